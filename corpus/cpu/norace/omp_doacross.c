// Iterations wait for those before them.
#include <omp.h>
#include <stdio.h>
#include <stdlib.h>

int main(void) {
	omp_set_num_threads(4);
	static int a[64];
	a[0] = 1;
	#pragma omp parallel for ordered(1) schedule(static, 1)
	for (int i = 1; i < 64; i++) {
	#pragma omp ordered depend(sink : i - 1)
		a[i] = a[i - 1] + 1;
	#pragma omp ordered depend(source)
	}
	printf("%d\n", a[63]);
	return 0;
}
