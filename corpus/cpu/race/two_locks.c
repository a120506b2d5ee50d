// Each thread has a lock of its own.
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int counter;
pthread_mutex_t m[4];
static void *work(void *arg) {
	long id = (long)arg;
	(void)id;
	pthread_mutex_lock(&m[id]);
	counter++; // want race
	pthread_mutex_unlock(&m[id]);
	return NULL;
}

int main(void) {
	pthread_t t[4];
	for (int i = 0; i < 4; i++)
		pthread_mutex_init(&m[i], NULL);
	for (long i = 0; i < 4; i++)
		pthread_create(&t[i], NULL, work, (void *)i);
	for (int i = 0; i < 4; i++)
		pthread_join(t[i], NULL);
	return 0;
}
