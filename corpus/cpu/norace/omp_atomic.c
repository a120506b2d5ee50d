// Atomic updates, of an integer and a double.
#include <omp.h>
#include <stdio.h>
#include <stdlib.h>

int main(void) {
	omp_set_num_threads(4);
	int a = 0;
	double d = 0;
	#pragma omp parallel for
	for (int i = 0; i < 100; i++) {
	#pragma omp atomic
		a += i;
	#pragma omp atomic
		d += i;
	}
	printf("%d %f\n", a, d);
	return 0;
}
