// A copy of a structure that another thread changes.
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct big { long v[32]; } shared, copies[4];
static void *work(void *arg) {
	long id = (long)arg;
	(void)id;
	if (id == 0)
		shared.v[20] = 1; // want race
	else
		memcpy(&copies[id], &shared, sizeof shared); // want race
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
