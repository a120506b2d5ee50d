// Threads tell each other by a pipe, an eventfd and sockets that data are there.
#include <poll.h>
#include <pthread.h>
#include <stdint.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

static int pipes[2], sockets[2], event;
static int a, b, c, d;

static void *work(void *unused) {
	uint64_t one = 1;
	a = 1;
	if (write(pipes[1], "x", 1) != 1)
		return NULL;
	b = 2;
	if (send(sockets[1], "x", 1, 0) != 1)
		return NULL;
	c = 3;
	if (write(event, &one, sizeof one) != sizeof one)
		return NULL;
	d = 4;
	close(pipes[1]);
	return unused;
}

int main(void) {
	pthread_t t;
	char x;
	uint64_t n;
	event = eventfd(0, 0);
	if (pipe(pipes) || socketpair(AF_UNIX, SOCK_STREAM, 0, sockets))
		return 1;
	pthread_create(&t, NULL, work, NULL);
	struct pollfd wait = {pipes[0], POLLIN, 0};
	int right = poll(&wait, 1, -1) == 1 && a == 1;
	right = read(pipes[0], &x, 1) == 1 && right;
	right = recv(sockets[0], &x, 1, 0) == 1 && b == 2 && right;
	right = read(event, &n, sizeof n) == sizeof n && c == 3 && right;
	right = read(pipes[0], &x, 1) == 0 && d == 4 && right;
	pthread_join(t, NULL);
	return !right;
}
