// Stages hand buffers on through bounded queues. Arguments: threads (4), size.
#include "kernel.h"

struct queue { long *item[8]; int head, count; pthread_mutex_t m; pthread_cond_t full, empty; };
static struct queue queues[64];
static long total;

static void put(struct queue *q, long *x) {
	pthread_mutex_lock(&q->m);
	while (q->count == 8)
		pthread_cond_wait(&q->empty, &q->m);
	q->item[(q->head + q->count++) % 8] = x;
	pthread_cond_signal(&q->full);
	pthread_mutex_unlock(&q->m);
}

static long *take(struct queue *q) {
	pthread_mutex_lock(&q->m);
	while (q->count == 0)
		pthread_cond_wait(&q->full, &q->m);
	long *x = q->item[q->head];
	q->head = (q->head + 1) % 8;
	q->count--;
	pthread_cond_signal(&q->empty);
	pthread_mutex_unlock(&q->m);
	return x;
}

static void work(int id, int threads) {
	for (long i = 0; i < size; i++) {
		long *x = id == 0 ? malloc(32 * sizeof *x) : take(&queues[id]);
		for (int k = 0; k < 32; k++)
			x[k] = id == 0 ? i + k : x[k] * 3 + id;
		if (id < threads - 1) {
			put(&queues[id + 1], x);
		} else {
			total += x[31];
			free(x);
		}
	}
}

int main(int argc, char **argv) {
	begin(argc, argv);
	size = size ? size : 500;
	for (int i = 0; i < threads; i++) {
		pthread_mutex_init(&queues[i].m, NULL);
		pthread_cond_init(&queues[i].full, NULL);
		pthread_cond_init(&queues[i].empty, NULL);
	}
	in_threads(work);
	printf("%ld\n", total);
	return 0;
}
