// A thread of C11 that is joined after its result is read.
#include <threads.h>

int result;

static int work(void *arg) {
	result = 1; // want race
	return 0;
}

int main(void) {
	thrd_t t;
	thrd_create(&t, work, NULL);
	int early = result; // want race
	thrd_join(t, NULL);
	return early > 1;
}
