// The thread of main ends before the process, and another one joins it.
#include <pthread.h>
#include <stdio.h>

static int v;
static pthread_t first;

static void *work(void *unused) {
	(void)unused;
	pthread_join(first, NULL);
	v++;
	return NULL;
}

int main(void) {
	pthread_t t;
	first = pthread_self();
	pthread_create(&t, NULL, work, NULL);
	v = 1;
	pthread_exit(NULL);
}
