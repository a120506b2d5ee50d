// Tasks, and a wait for them.
#include <omp.h>
#include <stdio.h>
#include <stdlib.h>

static int fib(int n) {
	if (n < 2)
		return n;
	int a, b;
#pragma omp task shared(a)
	a = fib(n - 1);
#pragma omp task shared(b)
	b = fib(n - 2);
#pragma omp taskwait
	return a + b;
}

int main(void) {
	omp_set_num_threads(4);
	int f;
#pragma omp parallel
#pragma omp single
	f = fib(12);
	printf("%d\n", f);
	return 0;
}
