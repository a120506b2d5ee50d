// Neighbouring bytes of one word.
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

char bytes[8];

static void *work(void *arg) {
	long id = (long)arg;
	(void)id;
	for (int i = 0; i < 100; i++)
		bytes[id]++;
	return NULL;
}

int main(void) {
	pthread_t t[4];
	memset(bytes, 0, sizeof bytes);
	for (long i = 0; i < 4; i++)
		pthread_create(&t[i], NULL, work, (void *)i);
	for (int i = 0; i < 4; i++)
		pthread_join(t[i], NULL);
	return 0;
}
