// A mutex taken by trylock.
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int counter;
pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;

static void *work(void *arg) {
	long id = (long)arg;
	(void)id;
	while (pthread_mutex_trylock(&m))
		;
	counter++;
	pthread_mutex_unlock(&m);
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
