// Random paths of a price, whose results a lock collects. Arguments: threads (4), size.
#include "kernel.h"

static double sum;
static long done;
static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;

static void work(int id, int threads) {
	double path[64];
	for (long n = id; n < size; n += threads) {
		unsigned r = n;
		path[0] = 100;
		for (int i = 1; i < 64; i++)
			path[i] = path[i - 1] * (1 + (rnd(&r) % 2001 - 1000.0) * 1e-5);
		pthread_mutex_lock(&m);
		sum += path[63];
		done++;
		pthread_mutex_unlock(&m);
	}
}

int main(int argc, char **argv) {
	begin(argc, argv);
	size = size ? size : 2000;
	in_threads(work);
	printf("%ld %.3f\n", done, sum / done);
	return 0;
}
