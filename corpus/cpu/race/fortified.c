// Copies of the C library that check the size of what they write to.
#undef _FORTIFY_SOURCE
#define _FORTIFY_SOURCE 2
#include <pthread.h>
#include <string.h>

static char a[32], b[32], c[32], d[32];
static const char *volatile text = "text";
static volatile size_t size = 3;

static void *work(void *unused) {
	const char *from = text;
	strcpy(a, from); // want race
	strcat(b, from); // want race
	strncpy(c, from, size); // want race
	memmove(d, from, size); // want race
	return unused;
}

int main(void) {
	pthread_t t[2];
	for (int i = 0; i < 2; i++)
		pthread_create(&t[i], NULL, work, NULL);
	for (int i = 0; i < 2; i++)
		pthread_join(t[i], NULL);
	return 0;
}
