// Threads count in bins of their own and in shared ones by atomics. Arguments: threads (4), size.
#include "kernel.h"

#include <stdatomic.h>
static unsigned char *text;
static atomic_int shared[256];
static int own[64][256];

static void work(int id, int threads) {
	for (long i = size * id / threads; i < size * (id + 1) / threads; i++) {
		own[id][text[i]]++;
		if (i % 16 == 0)
			atomic_fetch_add_explicit(&shared[text[i]], 1, memory_order_relaxed);
	}
	meet();
	if (id == 0)
		for (int t = 1; t < threads; t++)
			for (int i = 0; i < 256; i++)
				own[0][i] += own[t][i];
}

int main(int argc, char **argv) {
	begin(argc, argv);
	size = size ? size : 100000;
	text = malloc(size);
	unsigned r = 1;
	for (long i = 0; i < size; i++)
		text[i] = rnd(&r) & rnd(&r);
	in_threads(work);
	printf("%d %d\n", own[0][0], atomic_load(&shared[0]));
	return 0;
}
