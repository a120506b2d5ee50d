// Two tasks write one variable. One thread may execute both, and that orders nothing.
#include <stdio.h>

int main(void) {
	int last = 0;
#pragma omp parallel num_threads(2)
#pragma omp single
	{
#pragma omp task shared(last)
		last = 1; // want race
#pragma omp task shared(last)
		last = 2; // want race
	}
	printf("%d\n", last > 2);
	return 0;
}
