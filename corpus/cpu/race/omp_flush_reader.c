// A flag hands data over, but its reader has no flush after it.
#include <omp.h>
#include <stdio.h>

int data, flag;

int main(void) {
	#pragma omp parallel num_threads(2)
	{
		if (omp_get_thread_num() == 0) {
			data = 42; // want race
			#pragma omp flush
			#pragma omp atomic write
			flag = 1;
		} else {
			int seen = 0;
			while (!seen) {
				#pragma omp atomic read
				seen = flag;
			}
			printf("%d\n", data); // want race
		}
	}
	return 0;
}
