// A loop reads what another one that nobody waits for writes.
#include <omp.h>
#include <stdio.h>
#include <stdlib.h>

int main(void) {
	omp_set_num_threads(4);
	static int a[1000], b[1000];
	#pragma omp parallel num_threads(4)
	{
	#pragma omp for nowait
		for (int i = 0; i < 1000; i++)
			a[i] = i; // want race
	#pragma omp for
		for (int i = 0; i < 1000; i++)
			b[i] = a[999 - i]; // want race
	}
	printf("%d\n", b[3] > 5000);
	return 0;
}
