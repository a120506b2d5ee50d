// A block is freed while another thread reads it.
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int *block;
int sink;

static void *work(void *arg) {
	long id = (long)arg;
	(void)id;
	if (id == 0)
		free(block); // want race
	else
		sink = block[3]; // want race
	return NULL;
}

int main(void) {
	pthread_t t[2];
	block = calloc(8, sizeof *block);
	for (long i = 0; i < 2; i++)
		pthread_create(&t[i], NULL, work, (void *)i);
	for (int i = 0; i < 2; i++)
		pthread_join(t[i], NULL);
	return 0;
}
