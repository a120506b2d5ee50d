// A consumer waits for a condition variable.
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int ready, value;
pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
pthread_cond_t c = PTHREAD_COND_INITIALIZER;

static void *work(void *arg) {
	long id = (long)arg;
	(void)id;
	if (id == 0) {
		value = 42;
		pthread_mutex_lock(&m);
		ready = 1;
		pthread_cond_broadcast(&c);
		pthread_mutex_unlock(&m);
	} else {
		pthread_mutex_lock(&m);
		while (!ready)
			pthread_cond_wait(&c, &m);
		pthread_mutex_unlock(&m);
		if (value != 42)
			abort();
	}
	return NULL;
}

int main(void) {
	pthread_t t[4];
	for (long i = 0; i < 4; i++)
		pthread_create(&t[i], NULL, work, (void *)i);
	for (int i = 0; i < 4; i++)
		pthread_join(t[i], NULL);
	return 0;
}
