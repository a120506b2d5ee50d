// One thread initialises, all read.
#include <omp.h>
#include <stdio.h>
#include <stdlib.h>

int main(void) {
	omp_set_num_threads(4);
	int v = 0, sum = 0;
	#pragma omp parallel reduction(+ : sum)
	{
	#pragma omp single
		v = 42;
		sum += v;
		int mine;
	#pragma omp single copyprivate(mine)
		mine = 7;
		sum += mine;
	}
	printf("%d\n", sum);
	return 0;
}
