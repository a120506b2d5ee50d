// A result is read before its task has ended. The flag makes sure that another thread runs the task, and orders nothing.
#include <omp.h>
#include <stdio.h>

int main(void) {
	int a = 0, begun = 0, seen = 0;
#pragma omp parallel num_threads(4)
#pragma omp single
	{
#pragma omp task shared(a, begun)
		{
#pragma omp atomic write
			begun = 1;
			a = 42; // want race
		}
		while (!seen) {
#pragma omp atomic read
			seen = begun;
		}
		printf("%d\n", a > 100); // want race
	}
	return 0;
}
