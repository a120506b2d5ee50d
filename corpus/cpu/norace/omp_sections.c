// Sections write variables of their own.
#include <omp.h>
#include <stdio.h>
#include <stdlib.h>

int main(void) {
	omp_set_num_threads(4);
	int a = 0, b = 0;
	#pragma omp parallel sections
	{
	#pragma omp section
		a = 1;
	#pragma omp section
		b = 2;
	}
	printf("%d\n", a + b);
	return 0;
}
