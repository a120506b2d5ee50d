// Readers share a lock, a writer has it alone.
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int value;
int seen[4];
pthread_rwlock_t l = PTHREAD_RWLOCK_INITIALIZER;

static void *work(void *arg) {
	long id = (long)arg;
	(void)id;
	if (id == 0) {
		pthread_rwlock_wrlock(&l);
		value = 1;
		pthread_rwlock_unlock(&l);
	} else {
		pthread_rwlock_rdlock(&l);
		seen[id] = value;
		pthread_rwlock_unlock(&l);
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
