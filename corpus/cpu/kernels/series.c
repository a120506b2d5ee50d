// Coefficients of a Fourier series by numeric integration. Arguments: threads (4), size.
#include "kernel.h"

static double *sines, *cosines;

static void work(int id, int threads) {
	for (long n = id; n < size; n += threads) {
		double s = 0, c = 0;
		for (int i = 0; i < 200; i++) {
			double x = i * 0.01, f = pow(x + 1, x);
			s += f * sin(n * x);
			c += f * cos(n * x);
		}
		sines[n] = s * 0.01;
		cosines[n] = c * 0.01;
	}
}

int main(int argc, char **argv) {
	begin(argc, argv);
	size = size ? size : 400;
	sines = calloc(size, sizeof *sines), cosines = calloc(size, sizeof *cosines);
	in_threads(work);
	printf("%.6f %.6f\n", sines[1], cosines[1]);
	return 0;
}
