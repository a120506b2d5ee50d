// Reductions, of a sum and a maximum.
#include <omp.h>
#include <stdio.h>
#include <stdlib.h>

int main(void) {
	omp_set_num_threads(4);
	int sum = 0, most = 0;
	double product = 1;
	#pragma omp parallel for reduction(+ : sum) reduction(max : most) reduction(* : product)
	for (int i = 0; i < 100; i++) {
		sum += i;
		if (i > most)
			most = i;
		product *= 1.01;
	}
	printf("%d %d %f\n", sum, most, product);
	return 0;
}
