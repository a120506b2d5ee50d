// Tasks reduce into copies of the thread that executes them.
#include <stdio.h>

int main(void) {
	int a[200], sum = 0, again = 0;
#pragma omp parallel num_threads(4)
#pragma omp single
	{
#pragma omp taskloop grainsize(10)
		for (int i = 0; i < 200; i++)
			a[i] = i;
#pragma omp taskgroup task_reduction(+ : sum)
		for (int k = 0; k < 20; k++) {
#pragma omp task in_reduction(+ : sum)
			for (int i = k * 10; i < k * 10 + 10; i++)
				sum += a[i];
		}
	}
#pragma omp parallel reduction(task, + : again) num_threads(4)
#pragma omp single
	for (int k = 0; k < 20; k++) {
#pragma omp task in_reduction(+ : again)
		for (int i = k * 10; i < k * 10 + 10; i++)
			again += a[i];
	}
	printf("%d %d\n", sum, again);
	return sum != 19900 || again != 19900;
}
