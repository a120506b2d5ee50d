// Private, firstprivate, lastprivate and threadprivate variables.
#include <omp.h>
#include <stdio.h>
#include <stdlib.h>

static int mine;
#pragma omp threadprivate(mine)

int main(void) {
	omp_set_num_threads(4);
	int x = 1, y = 2, z = 0;
	#pragma omp parallel for private(x) firstprivate(y) lastprivate(z)
	for (int i = 0; i < 100; i++) {
		x = i;
		y += x;
		z = i;
		mine += y;
	}
	printf("%d\n", z);
	return 0;
}
