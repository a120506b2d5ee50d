// A volatile flag orders nothing.
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

volatile int ready;
int value, sink;

static void *work(void *arg) {
	long id = (long)arg;
	(void)id;
	if (id == 0) {
		value = 42; // want race
		ready = 1; // want race
	} else {
		while (!ready) // want race
			;
		sink = value; // want race
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
