// Threads add to a counter without a lock.
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int counter;

static void *work(void *arg) {
	long id = (long)arg;
	(void)id;
	for (int i = 0; i < 100; i++)
		counter++; // want race
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
