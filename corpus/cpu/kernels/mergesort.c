// Parts are sorted, then merged in a tree of threads. Arguments: threads (4), size.
#include "kernel.h"

static int *data, *spare;

static void merge(long a, long m, long b) {
	long i = a, j = m;
	for (long k = a; k < b; k++)
		spare[k] = i < m && (j >= b || data[i] <= data[j]) ? data[i++] : data[j++];
	for (long k = a; k < b; k++)
		data[k] = spare[k];
}

static void sort(long a, long b) {
	if (b - a > 1) {
		sort(a, (a + b) / 2);
		sort((a + b) / 2, b);
		merge(a, (a + b) / 2, b);
	}
}

static void work(int id, int threads) {
	sort(size * id / threads, size * (id + 1) / threads);
	for (int step = 1; step < threads; step *= 2) {
		meet();
		int end = id + 2 * step < threads ? id + 2 * step : threads;
		if (id % (2 * step) == 0 && id + step < threads)
			merge(size * id / threads, size * (id + step) / threads, size * end / threads);
	}
}

int main(int argc, char **argv) {
	begin(argc, argv);
	size = size ? size : 20000;
	data = malloc(size * sizeof *data), spare = malloc(size * sizeof *spare);
	unsigned r = 1;
	for (long i = 0; i < size; i++)
		data[i] = rnd(&r);
	in_threads(work);
	for (long i = 1; i < size; i++)
		if (data[i - 1] > data[i])
			abort();
	printf("%d\n", data[size / 2]);
	return 0;
}
