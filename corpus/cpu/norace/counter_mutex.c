// Threads add to a counter under a mutex.
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int counter;
pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;

static void *work(void *arg) {
	long id = (long)arg;
	(void)id;
	for (int i = 0; i < 100; i++) {
		pthread_mutex_lock(&m);
		counter++;
		pthread_mutex_unlock(&m);
	}
	return NULL;
}

int main(void) {
	pthread_t t[4];
	for (long i = 0; i < 4; i++)
		pthread_create(&t[i], NULL, work, (void *)i);
	for (int i = 0; i < 4; i++)
		pthread_join(t[i], NULL);
	printf("%d\n", counter);
	return 0;
}
