// A process forks while its threads use atomics, which the child uses, too.
#include <pthread.h>
#include <stdatomic.h>
#include <sys/wait.h>
#include <unistd.h>

static atomic_int n[64], stop;

static void add(void) {
	for (int i = 0; i < 64; i++)
		atomic_fetch_add(&n[i], 1);
}

static void *work(void *unused) {
	(void)unused;
	while (!atomic_load(&stop))
		add();
	return NULL;
}

int main(void) {
	pthread_t t[3];
	int failed = 0;
	for (int i = 0; i < 3; i++)
		pthread_create(&t[i], NULL, work, NULL);
	for (int i = 0; i < 40; i++) {
		int status = 1;
		pid_t child = fork();
		if (child == 0) {
			add();
			_exit(0);
		}
		waitpid(child, &status, 0);
		failed |= status;
	}
	atomic_store(&stop, 1);
	for (int i = 0; i < 3; i++)
		pthread_join(t[i], NULL);
	return failed != 0;
}
