// Successive over-relaxation on a grid, red and black. Arguments: threads (4), size.
#include "kernel.h"

static double *grid;

static void work(int id, int threads) {
	for (int round = 0; round < 10; round++)
		for (int color = 0; color < 2; color++) {
			for (long y = 1 + id; y < size - 1; y += threads)
				for (long x = 1 + (y + color) % 2; x < size - 1; x += 2) {
					double *g = &grid[y * size + x];
					*g = 0.3125 * (g[-1] + g[1] + g[-size] + g[size]) - 0.25 * *g;
				}
			meet();
		}
}

int main(int argc, char **argv) {
	begin(argc, argv);
	size = size ? size : 160;
	grid = malloc(size * size * sizeof *grid);
	unsigned r = 1;
	for (long i = 0; i < size * size; i++)
		grid[i] = rnd(&r) % 1000 * 1e-3;
	in_threads(work);
	printf("%.9f\n", grid[size * size / 2 + size / 2]);
	return 0;
}
