// pthread_once initialises.
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int value;
pthread_once_t once = PTHREAD_ONCE_INIT;
static void init(void) { value = 42; }

static void *work(void *arg) {
	long id = (long)arg;
	(void)id;
	pthread_once(&once, init);
	if (value != 42)
		abort();
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
