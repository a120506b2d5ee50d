// Threads write, meet, and read what others wrote.
#include <omp.h>
#include <stdio.h>
#include <stdlib.h>

int main(void) {
	omp_set_num_threads(4);
	int cell[4], sum = 0;
	#pragma omp parallel num_threads(4) reduction(+ : sum)
	{
		int id = omp_get_thread_num();
		for (int r = 0; r < 10; r++) {
			cell[id] = r;
	#pragma omp barrier
			sum += cell[(id + 1) % omp_get_num_threads()];
	#pragma omp barrier
		}
	}
	printf("%d\n", sum);
	return 0;
}
