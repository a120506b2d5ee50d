// A spin lock.
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int counter;
pthread_spinlock_t l;

static void *work(void *arg) {
	long id = (long)arg;
	(void)id;
	pthread_spin_lock(&l);
	counter++;
	pthread_spin_unlock(&l);
	return NULL;
}

int main(void) {
	pthread_t t[4];
	pthread_spin_init(&l, 0);
	for (long i = 0; i < 4; i++)
		pthread_create(&t[i], NULL, work, (void *)i);
	for (int i = 0; i < 4; i++)
		pthread_join(t[i], NULL);
	return 0;
}
