// Threads one after the other have the same stack.
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>



static void *work(void *arg) {
	long id = (long)arg;
	(void)id;
	volatile long many[64];
	for (int i = 0; i < 64; i++)
		many[i] = id;
	return NULL;
}

int main(void) {
	pthread_t t[1];
	for (long i = 0; i < 1; i++)
		pthread_create(&t[i], NULL, work, (void *)i);
	for (int i = 0; i < 1; i++)
		pthread_join(t[i], NULL);
	pthread_t u;
	for (long i = 0; i < 20; i++) {
		pthread_create(&u, NULL, work, (void *)i);
		pthread_join(u, NULL);
	}
	return 0;
}
