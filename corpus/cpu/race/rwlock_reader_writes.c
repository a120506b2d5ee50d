// A thread writes with a lock that it has for reading.
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int value;
pthread_rwlock_t l = PTHREAD_RWLOCK_INITIALIZER;

static void *work(void *arg) {
	long id = (long)arg;
	(void)id;
	pthread_rwlock_rdlock(&l);
	value++; // want race
	pthread_rwlock_unlock(&l);
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
