// The thread that has made a task goes on beside it, whoever executes the task.
#include <stdio.h>

int main(void) {
	int result = 0, seen = 0;
#pragma omp parallel num_threads(2)
#pragma omp single
	{
#pragma omp task shared(result)
		result = 42; // want race
		seen = result; // want race
	}
	printf("%d\n", seen > 42);
	return 0;
}
