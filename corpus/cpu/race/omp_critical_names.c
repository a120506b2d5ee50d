// Critical sections of two names.
#include <omp.h>
#include <stdio.h>
#include <stdlib.h>

int main(void) {
	omp_set_num_threads(4);
	int a = 0, done = 0;
#pragma omp parallel num_threads(2)
	{
		if (omp_get_thread_num() == 0) {
#pragma omp critical(x)
			a++; // want race
		} else {
#pragma omp critical(y)
			a++; // want race
			done = 1;
		}
	}
	printf("%d\n", a + done > 0);
	return 0;
}
