// Bit fields of one word.
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int done;
struct { unsigned a : 4, b : 4; } flags;

static void *work(void *arg) {
	long id = (long)arg;
	(void)id;
	if (id & 1)
		flags.a = 1; // want race
	else {
		flags.b = 1; // want race
		done = 1;
	}
	return NULL;
}

int main(void) {
	pthread_t t[2];
	for (long i = 0; i < 2; i++)
		pthread_create(&t[i], NULL, work, (void *)i);
	for (int i = 0; i < 2; i++)
		pthread_join(t[i], NULL);
	return 0;
}
