// Threads write, meet at a barrier, and read what the neighbour wrote.
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int cell[4], sum[4];
pthread_barrier_t b;

static void *work(void *arg) {
	long id = (long)arg;
	(void)id;
	for (int round = 0; round < 10; round++) {
		cell[id] = round;
		pthread_barrier_wait(&b);
		sum[id] += cell[(id + 1) % 4];
		pthread_barrier_wait(&b);
	}
	return NULL;
}

int main(void) {
	pthread_t t[4];
	pthread_barrier_init(&b, NULL, 4);
	for (long i = 0; i < 4; i++)
		pthread_create(&t[i], NULL, work, (void *)i);
	for (int i = 0; i < 4; i++)
		pthread_join(t[i], NULL);
	return 0;
}
