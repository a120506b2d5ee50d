// A reduction that the program declares.
#include <omp.h>
#include <stdio.h>
#include <stdlib.h>

struct pair { int a, b; };
#pragma omp declare reduction(add : struct pair : omp_out.a += omp_in.a, omp_out.b += omp_in.b) initializer(omp_priv = {0, 0})

int main(void) {
	omp_set_num_threads(4);
	struct pair p = {0, 0};
	#pragma omp parallel for reduction(add : p)
	for (int i = 0; i < 100; i++) {
		p.a += i;
		p.b++;
	}
	printf("%d %d\n", p.a, p.b);
	return 0;
}
