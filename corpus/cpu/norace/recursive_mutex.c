// A mutex that its owner locks again.
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int counter;
pthread_mutex_t m;

static void *work(void *arg) {
	long id = (long)arg;
	(void)id;
	pthread_mutex_lock(&m);
	pthread_mutex_lock(&m);
	counter++;
	pthread_mutex_unlock(&m);
	counter++;
	pthread_mutex_unlock(&m);
	return NULL;
}

int main(void) {
	pthread_t t[4];
	pthread_mutexattr_t a;
	pthread_mutexattr_init(&a);
	pthread_mutexattr_settype(&a, PTHREAD_MUTEX_RECURSIVE);
	pthread_mutex_init(&m, &a);
	for (long i = 0; i < 4; i++)
		pthread_create(&t[i], NULL, work, (void *)i);
	for (int i = 0; i < 4; i++)
		pthread_join(t[i], NULL);
	return 0;
}
