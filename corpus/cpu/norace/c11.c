// Threads, mutexes, condition variables and call_once of C11.
#include <stdlib.h>
#include <threads.h>

int counter, value;
mtx_t m;
cnd_t c;
once_flag once = ONCE_FLAG_INIT;
static void init(void) { value = 42; }

static int work(void *arg) {
	call_once(&once, init);
	if (value != 42)
		abort();
	mtx_lock(&m);
	counter++;
	cnd_broadcast(&c);
	while (counter < 4)
		cnd_wait(&c, &m);
	mtx_unlock(&m);
	return 0;
}

int main(void) {
	thrd_t t[4];
	mtx_init(&m, mtx_plain);
	cnd_init(&c);
	for (int i = 0; i < 4; i++)
		thrd_create(&t[i], work, NULL);
	for (int i = 0; i < 4; i++)
		thrd_join(t[i], NULL);
	return counter != 4;
}
