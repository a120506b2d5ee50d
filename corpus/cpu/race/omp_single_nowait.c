// One thread initialises, and nobody waits for it.
#include <omp.h>
#include <stdio.h>
#include <stdlib.h>

int main(void) {
	omp_set_num_threads(4);
	int v = 0, sum = 0;
	#pragma omp parallel reduction(+ : sum)
	{
	#pragma omp single nowait
		v = 42; // want race
		sum += v; // want race
	}
	printf("%d\n", sum >= 0);
	return 0;
}
