// Tasks are ordered by what they depend on.
#include <omp.h>
#include <stdio.h>
#include <stdlib.h>

int main(void) {
	omp_set_num_threads(4);
	int a = 0, b = 0, c = 0;
	#pragma omp parallel
	#pragma omp single
	{
	#pragma omp task depend(out : a) shared(a)
		a = 1;
	#pragma omp task depend(in : a) depend(out : b) shared(a, b)
		b = a + 1;
	#pragma omp task depend(in : a) depend(out : c) shared(a, c)
		c = a + 2;
	#pragma omp task depend(in : b, c) shared(a, b, c)
		printf("%d\n", b + c);
	#pragma omp task depend(inout : a) shared(a)
		a++;
	}
	return 0;
}
