// Tasks sort the halves of an array. Their frames use the stacks of threads that have executed other tasks before.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void merge(int *a, int n, int m, int *room) {
	int i = 0, j = m, k = 0;
	while (i < m && j < n)
		room[k++] = a[i] <= a[j] ? a[i++] : a[j++];
	while (i < m)
		room[k++] = a[i++];
	while (j < n)
		room[k++] = a[j++];
	memcpy(a, room, n * sizeof *a);
}

static void sort(int *a, int n, int *room) {
	int copies[2][8], m = n / 2;
	if (n < 2)
		return;
	for (int i = 0; i < 8; i++)
		copies[0][i] = copies[1][i] = i;
#pragma omp task shared(copies)
	{
		int mine[32];
		for (int i = 0; i < 32; i++)
			mine[i] = copies[0][i % 8]++;
		sort(a, m, room + mine[0]);
	}
#pragma omp task shared(copies)
	{
		int mine[64];
		for (int i = 0; i < 64; i++)
			mine[i] = copies[1][i % 8]++;
		sort(a + m, n - m, room + m + mine[0]);
	}
#pragma omp taskwait
	merge(a, n, m, room);
}

int main(void) {
	enum { N = 200 };
	int a[N], room[N], wrong = 0;
	for (int i = 0; i < N; i++)
		a[i] = i * 7919 % N;
#pragma omp parallel num_threads(4)
#pragma omp single
	sort(a, N, room);
	for (int i = 0; i < N; i++)
		wrong += a[i] != i;
	printf("%d\n", wrong);
	return wrong;
}
