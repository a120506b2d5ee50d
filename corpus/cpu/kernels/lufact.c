// LU factorisation with partial pivoting, columns dealt out. Arguments: threads (4), size.
#include "kernel.h"

static double *a;
static long pivot;

static void work(int id, int threads) {
	for (long k = 0; k < size - 1; k++) {
		if (id == 0) {
			pivot = k;
			for (long i = k + 1; i < size; i++)
				if (fabs(a[i * size + k]) > fabs(a[pivot * size + k]))
					pivot = i;
			for (long j = 0; j < size; j++) {
				double t = a[k * size + j];
				a[k * size + j] = a[pivot * size + j];
				a[pivot * size + j] = t;
			}
		}
		meet();
		for (long i = k + 1 + id; i < size; i += threads) {
			double f = a[i * size + k] /= a[k * size + k];
			for (long j = k + 1; j < size; j++)
				a[i * size + j] -= f * a[k * size + j];
		}
		meet();
	}
}

int main(int argc, char **argv) {
	begin(argc, argv);
	size = size ? size : 90;
	a = malloc(size * size * sizeof *a);
	unsigned r = 1;
	for (long i = 0; i < size * size; i++)
		a[i] = rnd(&r) % 1000 * 1e-3 - 0.5;
	in_threads(work);
	printf("%.6f\n", a[size * size - 1]);
	return 0;
}
