// Threads allocate and free blocks that others had before.
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>



static void *work(void *arg) {
	long id = (long)arg;
	(void)id;
	for (int i = 0; i < 200; i++) {
		long *p = malloc(64 + i % 3 * 16);
		p[0] = id;
		p[5] = i;
		free(p);
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
