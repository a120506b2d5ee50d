// A semaphore hands a buffer on.
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <semaphore.h>
int value;
sem_t full;

static void *work(void *arg) {
	long id = (long)arg;
	(void)id;
	if (id == 0) {
		value = 42;
		for (int i = 0; i < 3; i++)
			sem_post(&full);
	} else {
		sem_wait(&full);
		if (value != 42)
			abort();
	}
	return NULL;
}

int main(void) {
	pthread_t t[4];
	sem_init(&full, 0, 0);
	for (long i = 0; i < 4; i++)
		pthread_create(&t[i], NULL, work, (void *)i);
	for (int i = 0; i < 4; i++)
		pthread_join(t[i], NULL);
	return 0;
}
