// A loop of tasks.
#include <omp.h>
#include <stdio.h>
#include <stdlib.h>

int main(void) {
	omp_set_num_threads(4);
	static int a[1000];
	#pragma omp parallel
	#pragma omp single
	{
	#pragma omp taskloop grainsize(50)
		for (int i = 0; i < 1000; i++)
			a[i] = i;
		int sum = 0;
		for (int i = 0; i < 1000; i++)
			sum += a[i];
		printf("%d\n", sum);
	}
	return 0;
}
