// Iterations read what the one after them writes.
#include <omp.h>
#include <stdio.h>
#include <stdlib.h>

int main(void) {
	omp_set_num_threads(4);
	static int a[1000];
	#pragma omp parallel for schedule(static, 1)
	for (int i = 0; i < 999; i++)
		a[i] = a[i + 1] + 1; // want race
	printf("%d\n", a[0] > 1000);
	return 0;
}
