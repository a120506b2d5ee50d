// A sum without a reduction.
#include <omp.h>
#include <stdio.h>
#include <stdlib.h>

int main(void) {
	omp_set_num_threads(4);
	int sum = 0;
	#pragma omp parallel for
	for (int i = 0; i < 100; i++)
		sum += i; // want race
	printf("%d\n", sum > 0);
	return 0;
}
