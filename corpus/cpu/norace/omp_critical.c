// Critical sections, named and not.
#include <omp.h>
#include <stdio.h>
#include <stdlib.h>

int main(void) {
	omp_set_num_threads(4);
	int a = 0, b = 0;
	#pragma omp parallel
	{
	#pragma omp critical
		a++;
	#pragma omp critical(b)
		b++;
	}
	printf("%d %d\n", a, b);
	return 0;
}
