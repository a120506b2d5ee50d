// One region after another, and nested ones.
#include <omp.h>
#include <stdio.h>
#include <stdlib.h>

int main(void) {
	omp_set_num_threads(4);
	static int a[64];
	for (int r = 0; r < 20; r++) {
	#pragma omp parallel for
		for (int i = 0; i < 64; i++)
			a[i] += r;
		a[r]++;
	}
	omp_set_max_active_levels(2);
	#pragma omp parallel num_threads(2)
	{
		int base = omp_get_thread_num() * 32;
	#pragma omp parallel for num_threads(2)
		for (int i = 0; i < 32; i++)
			a[base + i]++;
		a[base]++;
	}
	printf("%d\n", a[0]);
	return 0;
}
