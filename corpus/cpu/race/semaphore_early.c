// The producer writes after it has posted.
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
		sem_post(&full);
		value = 42; // want race
	} else {
		sem_wait(&full);
		printf("%d\n", value > 100); // want race
	}
	return NULL;
}

int main(void) {
	pthread_t t[2];
	sem_init(&full, 0, 0);
	for (long i = 0; i < 2; i++)
		pthread_create(&t[i], NULL, work, (void *)i);
	for (int i = 0; i < 2; i++)
		pthread_join(t[i], NULL);
	return 0;
}
