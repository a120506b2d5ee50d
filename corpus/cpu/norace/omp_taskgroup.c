// A group waits for the tasks that its tasks make.
#include <omp.h>
#include <stdio.h>
#include <stdlib.h>

int main(void) {
	omp_set_num_threads(4);
	int a = 0, b = 0;
	#pragma omp parallel
	#pragma omp single
	{
	#pragma omp taskgroup
		{
	#pragma omp task shared(a, b)
			{
				a = 1;
	#pragma omp task shared(b)
				b = 2;
			}
		}
		printf("%d\n", a + b);
	}
	return 0;
}
