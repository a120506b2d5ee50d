// One thread clears the bytes that others write.
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

char bytes[64];

static void *work(void *arg) {
	long id = (long)arg;
	(void)id;
	if (id == 0)
		memset(bytes, 1, sizeof bytes); // want race
	else
		bytes[id * 9] = 2; // want race
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
