// Tasks that are not tied to a thread go on in another one than that in which they began.
#include <stdio.h>
#include <string.h>

enum { N = 5 };

static int fits(const char *queen, int n) {
	for (int i = 0; i < n - 1; i++) {
		int apart = queen[n - 1] - queen[i];
		if (apart == 0 || apart == n - 1 - i || -apart == n - 1 - i)
			return 0;
	}
	return 1;
}

static int solutions(const char *queen, int n) {
	int found[N] = {0}, all = 0;
	if (n == N)
		return 1;
	for (int i = 0; i < N; i++) {
#pragma omp task untied shared(found) firstprivate(i)
		{
			char next[N];
			memcpy(next, queen, n);
			next[n] = i;
			if (fits(next, n + 1))
				found[i] = solutions(next, n + 1);
		}
	}
#pragma omp taskwait
	for (int i = 0; i < N; i++)
		all += found[i];
	return all;
}

int main(void) {
	int all = 0;
#pragma omp parallel num_threads(4)
#pragma omp single
	all = solutions("", 0);
	printf("%d\n", all);
	return all != 10;
}
