// The program has functions of its own with names that the C library has, too.
#include <pthread.h>
#include <stddef.h>

static char memory[1 << 16];
static size_t used;
int sent, v;

void *malloc(size_t n) {
	size_t at = __atomic_fetch_add(&used, (n + 31) / 16 * 16, __ATOMIC_RELAXED);
	return at + n > sizeof memory ? NULL : memory + at;
}
void free(void *p) { (void)p; }
void send(int n) { sent += n; }
int connect(void) { return 4; }

static void *work(void *unused) {
	v = connect();
	send(v);
	return unused;
}

int main(void) {
	pthread_t t;
	pthread_create(&t, NULL, work, NULL);
	pthread_join(t, NULL);
	return sent != 4;
}
