// Both tasks say that they read what they write, so that neither waits for the other.
#include <stdio.h>

int main(void) {
	int last = 0;
#pragma omp parallel num_threads(2)
#pragma omp single
	{
#pragma omp task depend(in : last) shared(last)
		last = 1; // want race
#pragma omp task depend(in : last) shared(last)
		last = 2; // want race
	}
	printf("%d\n", last > 2);
	return 0;
}
