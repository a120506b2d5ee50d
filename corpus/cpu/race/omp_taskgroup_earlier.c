// The end of a taskgroup waits for the tasks of the group, and not for one that was made earlier.
#include <stdio.h>

int main(void) {
	int result = 0, sum = 0;
#pragma omp parallel num_threads(2)
#pragma omp single
	{
#pragma omp task shared(result)
		result = 42; // want race
#pragma omp taskgroup
		{
#pragma omp task shared(sum)
			sum = 1;
		}
		sum += result; // want race
	}
	printf("%d\n", sum > 43);
	return 0;
}
