// Locks and nested locks of OpenMP.
#include <omp.h>
#include <stdio.h>
#include <stdlib.h>

int main(void) {
	omp_set_num_threads(4);
	int a = 0, b = 0;
	omp_lock_t l;
	omp_nest_lock_t n;
	omp_init_lock(&l);
	omp_init_nest_lock(&n);
	#pragma omp parallel
	{
		omp_set_lock(&l);
		a++;
		omp_unset_lock(&l);
		omp_set_nest_lock(&n);
		omp_set_nest_lock(&n);
		b++;
		omp_unset_nest_lock(&n);
		b++;
		omp_unset_nest_lock(&n);
	}
	printf("%d %d\n", a, b);
	return 0;
}
