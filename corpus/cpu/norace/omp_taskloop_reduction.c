// The tasks of a taskloop sum up.
#include <stdio.h>

int main(void) {
	int sum = 0;
#pragma omp parallel num_threads(4)
#pragma omp single
#pragma omp taskloop grainsize(5) reduction(+ : sum)
	for (int i = 0; i < 100; i++)
		sum += i;
	printf("%d\n", sum);
	return sum != 4950;
}
