// A taskwait waits for the tasks that the present one has made, and not for those that they have made.
#include <stdio.h>

int main(void) {
	int result = 0, seen = 0;
#pragma omp parallel num_threads(2)
#pragma omp single
	{
#pragma omp task shared(result)
		{
#pragma omp task shared(result)
			result = 42; // want race
		}
#pragma omp taskwait
		seen = result; // want race
	}
	printf("%d\n", seen > 42);
	return 0;
}
