// The ordered part of a loop.
#include <omp.h>
#include <stdio.h>
#include <stdlib.h>

int main(void) {
	omp_set_num_threads(4);
	int last = -1;
	#pragma omp parallel for ordered schedule(dynamic)
	for (int i = 0; i < 50; i++) {
	#pragma omp ordered
		{
			if (last != i - 1)
				abort();
			last = i;
		}
	}
	return 0;
}
