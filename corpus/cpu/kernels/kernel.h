// What the programs of this folder have in common: their threads, a barrier, and random numbers.
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int threads = 4;
static long size; // 0 is the program's own
static pthread_barrier_t all;

static void begin(int argc, char **argv) {
	if (argc > 1)
		threads = atoi(argv[1]);
	if (argc > 2)
		size = atol(argv[2]);
}

static void meet(void) { pthread_barrier_wait(&all); }

struct start { void (*work)(int, int); int id; };

static void *run_start(void *p) {
	struct start *s = p;
	s->work(s->id, threads);
	return NULL;
}

static void in_threads(void (*work)(int, int)) {
	pthread_t t[64];
	struct start s[64];
	pthread_barrier_init(&all, NULL, threads);
	for (int i = 0; i < threads; i++) {
		s[i].work = work, s[i].id = i;
		pthread_create(&t[i], NULL, run_start, &s[i]);
	}
	for (int i = 0; i < threads; i++)
		pthread_join(t[i], NULL);
}

static inline unsigned rnd(unsigned *state) {
	*state = *state * 1664525u + 1013904223u;
	return *state >> 8;
}
