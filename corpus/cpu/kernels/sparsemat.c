// A sparse matrix times a vector, row blocks. Arguments: threads (4), size.
#include "kernel.h"

static double *value, *x, *y;
static int *column, *row;

static void work(int id, int threads) {
	for (int round = 0; round < 10; round++) {
		for (long i = size * id / threads; i < size * (id + 1) / threads; i++) {
			double s = 0;
			for (int k = row[i]; k < row[i + 1]; k++)
				s += value[k] * x[column[k]];
			y[i] = s;
		}
		meet();
		if (id == 0) {
			double *t = x;
			x = y, y = t;
		}
		meet();
	}
}

int main(int argc, char **argv) {
	begin(argc, argv);
	size = size ? size : 3000;
	value = malloc(size * 8 * sizeof *value), x = malloc(size * sizeof *x), y = malloc(size * sizeof *y);
	column = malloc(size * 8 * sizeof *column), row = malloc((size + 1) * sizeof *row);
	unsigned r = 1;
	for (long i = 0; i < size; i++) {
		x[i] = rnd(&r) % 100 * 1e-2;
		row[i] = i * 8;
		for (int k = 0; k < 8; k++)
			value[i * 8 + k] = 0.1, column[i * 8 + k] = rnd(&r) % size;
	}
	row[size] = size * 8;
	in_threads(work);
	printf("%.6f\n", x[size / 2]);
	return 0;
}
