// Threads map, move and unmap memory, each for itself, which others had before.
#define _GNU_SOURCE
#include <pthread.h>
#include <sys/mman.h>

static void *work(void *unused) {
	for (int i = 0; i < 100; i++) {
		char *p = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		p[0] = p[4096] = i;
		p = mremap(p, 8192, 65536, MREMAP_MAYMOVE);
		p[60000] = i;
		munmap(p, 65536);
	}
	return unused;
}

int main(void) {
	pthread_t t[4];
	for (int i = 0; i < 4; i++)
		pthread_create(&t[i], NULL, work, NULL);
	for (int i = 0; i < 4; i++)
		pthread_join(t[i], NULL);
	return 0;
}
