// Many read, one writes.
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int value = 1, sink[4];
static void *work(void *arg) {
	long id = (long)arg;
	(void)id;
	if (id == 3)
		value = 2; // want race
	else
		sink[id] = value; // want race
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
