// A loop after a loop, with all schedules.
#include <omp.h>
#include <stdio.h>
#include <stdlib.h>

int main(void) {
	omp_set_num_threads(4);
	static int a[1000], b[1000];
	#pragma omp parallel num_threads(4)
	{
	#pragma omp for schedule(dynamic, 10)
		for (int i = 0; i < 1000; i++)
			a[i] = i;
	#pragma omp for schedule(guided)
		for (int i = 0; i < 1000; i++)
			b[i] = a[999 - i];
	#pragma omp for schedule(runtime)
		for (int i = 0; i < 1000; i++)
			a[i] = b[999 - i];
	}
	#pragma omp parallel for schedule(dynamic)
	for (int i = 0; i < 1000; i++)
		a[i]++;
	printf("%d\n", a[3]);
	return 0;
}
