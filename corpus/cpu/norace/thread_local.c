// Each thread has a variable of its own.
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static _Thread_local int mine;

static void *work(void *arg) {
	long id = (long)arg;
	(void)id;
	for (int i = 0; i < 100; i++)
		mine++;
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
