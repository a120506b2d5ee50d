// A result is read before its task has ended.
#include <omp.h>
#include <stdio.h>
#include <stdlib.h>

int main(void) {
	omp_set_num_threads(4);
	int a = 0;
	#pragma omp parallel num_threads(4)
	#pragma omp single
	{
	#pragma omp task shared(a)
		{
			int x = 0;
			for (volatile int i = 0; i < 1000; i++)
				x++;
			a = x; // want race
		}
		for (volatile int i = 0; i < 3000000; i++)
			;
		printf("%d\n", a > 2000); // want race
	}
	return 0;
}
