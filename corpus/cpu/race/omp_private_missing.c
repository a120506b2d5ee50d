// A temporary variable that should be private.
#include <omp.h>
#include <stdio.h>
#include <stdlib.h>

int main(void) {
	omp_set_num_threads(4);
	int t = 0;
	static int a[100];
	#pragma omp parallel for
	for (int i = 0; i < 100; i++) {
		t = i * 2; // want race
		a[i] = t;
	}
	printf("%d\n", a[3] > 1000);
	return 0;
}
