package record

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"fencepost.dev/fencepost/internal/cpu"
	"fencepost.dev/fencepost/internal/cpu/fasttrack"
)

// Programs of POSIX threads for which verdicts were once wrong.
var threadPrograms = []struct{ name, text string }{
	{"many locks held for writing", `
#include <pthread.h>
enum { N = 40 };
static pthread_rwlock_t l[N];
int x;
static void *work(void *p) {
	for (int i = 0; i < N; i++)
		pthread_rwlock_wrlock(&l[i]);
	for (int i = 0; i < N; i++)
		pthread_rwlock_unlock(&l[i]);
	x++; // want race
	return p;
}
int main(void) {
	pthread_t t[2];
	for (int i = 0; i < N; i++)
		pthread_rwlock_init(&l[i], 0);
	for (int i = 0; i < 2; i++)
		pthread_create(&t[i], 0, work, 0);
	for (int i = 0; i < 2; i++)
		pthread_join(t[i], 0);
	return 0;
}
`},
	{"threads that cannot be created", `
#include <pthread.h>
int x;
static void *work(void *p) {
	x++; // want race
	return p;
}
int main(void) {
	pthread_t t[2];
	pthread_attr_t a;
	pthread_attr_init(&a);
	pthread_attr_setstacksize(&a, 1UL << 46);
	for (int i = 0; i < 5000; i++)
		if (pthread_create(&t[0], &a, work, 0) == 0)
			return 1;
	for (int i = 0; i < 2; i++)
		pthread_create(&t[i], 0, work, 0);
	for (int i = 0; i < 2; i++)
		pthread_join(t[i], 0);
	return 0;
}
`},
	{"many threads at a time, each of which goes on after another", `
#include <pthread.h>
#include <semaphore.h>
enum { N = 600 };
static sem_t go[N + 1];
int x;
static void *work(void *p) {
	long i = (long)p;
	sem_wait(&go[i]);
	x++;
	sem_post(i == N - 7 ? &go[N] : &go[(i + 7) % N]);
	return 0;
}
int main(void) {
	pthread_t t[N];
	pthread_attr_t a;
	pthread_attr_init(&a);
	pthread_attr_setstacksize(&a, 1 << 16);
	for (long i = 0; i <= N; i++)
		sem_init(&go[i], 0, 0);
	for (long i = 0; i < N; i++)
		if (pthread_create(&t[i], &a, work, (void *)i))
			return 1;
	sem_post(&go[0]);
	sem_wait(&go[N]);
	x++;
	for (int i = 0; i < N; i++)
		pthread_join(t[i], 0);
	return x == N + 1 ? 0 : 2;
}
`},
	{"signals that are read, and timers that create threads", `
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <sys/signalfd.h>
#include <time.h>
#include <unistd.h>
static sem_t fired;
int sent, set, late;
static void *sends(void *p) {
	sent = 1;
	kill(getpid(), SIGUSR1);
	late = 1; // want race
	return 0;
}
static void fire(union sigval v) {
	set++;
	sem_post(&fired);
}
int main(void) {
	pthread_t t;
	sigset_t s;
	struct signalfd_siginfo i;
	sigemptyset(&s), sigaddset(&s, SIGUSR1), pthread_sigmask(SIG_BLOCK, &s, 0);
	int fd = signalfd(-1, &s, 0);
	pthread_create(&t, 0, sends, 0);
	if (read(fd, &i, sizeof i) != sizeof i)
		return 1;
	sent++;
	late++; // want race
	pthread_join(t, 0);

	timer_t timer;
	struct sigevent e = {.sigev_notify = SIGEV_THREAD, .sigev_notify_function = fire};
	struct itimerspec soon = {{0, 0}, {0, 1000000}};
	sem_init(&fired, 0, 0);
	if (timer_create(CLOCK_MONOTONIC, &e, &timer))
		return 2;
	set = 1;
	timer_settime(timer, 0, &soon, 0);
	sem_wait(&fired);
	return set != 2;
}
`},
	{"queues of messages, and semaphores of System V", `
#include <fcntl.h>
#include <mqueue.h>
#include <pthread.h>
#include <sys/ipc.h>
#include <sys/msg.h>
#include <sys/sem.h>
static mqd_t q;
static int m, s, x[3], late;
static struct { long type; int value; } message = {1, 5};
static void *work(void *p) {
	struct sembuf up = {0, 1, 0};
	x[0] = 1, msgsnd(m, &message, sizeof message.value, 0);
	x[1] = 1, semop(s, &up, 1);
	x[2] = 1, q != -1 && mq_send(q, "a", 1, 0);
	late = 1; // want race
	return 0;
}
int main(void) {
	pthread_t t;
	char text[9];
	struct sembuf down = {0, -1, 0};
	struct mq_attr a = {.mq_maxmsg = 1, .mq_msgsize = sizeof text};
	q = mq_open("/fencepost-test", O_RDWR | O_CREAT, 0600, &a), mq_unlink("/fencepost-test");
	m = msgget(IPC_PRIVATE, 0600), s = semget(IPC_PRIVATE, 1, 0600);
	if (m < 0 || s < 0)
		return 1;
	pthread_create(&t, 0, work, 0);
	struct { long type; int value; } got;
	msgrcv(m, &got, sizeof got.value, 0, 0), x[0]++;
	semop(s, &down, 1), x[1]++;
	if (q != -1)
		mq_receive(q, text, sizeof text, 0), x[2]++;
	late++; // want race
	pthread_join(t, 0);
	msgctl(m, IPC_RMID, 0), semctl(s, 0, IPC_RMID);
	return got.value != 5;
}
`},
	{"maps of programs for large files", `
#define _FILE_OFFSET_BITS 64
#include <pthread.h>
#include <sys/mman.h>
static void *work(void *p) {
	for (int i = 0; i < 50; i++) {
		char *q = mmap(0, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		q[5] = 1;
		munmap(q, 4096);
	}
	return p;
}
int main(void) {
	pthread_t t[2];
	for (int k = 0; k < 4; k++) {
		pthread_create(&t[0], 0, work, 0), pthread_create(&t[1], 0, work, 0);
		pthread_join(t[0], 0), pthread_join(t[1], 0);
	}
	return 0;
}
`},
	{"streams and files that order", `
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <sys/file.h>
#include <unistd.h>
static int sent, held, locked, late;
static FILE *in, *out;
static char path[40];
static void use(void) {
	flockfile(in);
	held++;
	funlockfile(in);
	int fd = open(path, O_RDWR);
	flock(fd, LOCK_EX);
	locked++;
	flock(fd, LOCK_UN);
	close(fd);
}
static void *sends(void *p) {
	sent = 1;
	fprintf(out, "%d\n", 5), fflush(out);
	use();
	late++; // want race
	return 0;
}
int main(void) {
	pthread_t t;
	char line[9];
	int ends[2];
	FILE *file = tmpfile();
	sprintf(path, "/proc/self/fd/%d", fileno(file));
	if (pipe(ends))
		return 1;
	in = fdopen(ends[0], "r"), out = fdopen(ends[1], "w");
	pthread_create(&t, 0, sends, 0);
	fgets(line, sizeof line, in);
	sent++;
	use();
	late++; // want race
	pthread_join(t, 0);
	return line[0] != '5' || held != 2 || locked != 2;
}
`},
	{"functions with memory of their own", `
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
static void *work(void *p) {
	char text[] = "a b";
	time_t now = 0;
	struct tm of;
	strtok(text, " "); // want race
	int hour = localtime(&now)->tm_hour; // want race
	hour += localtime_r(&now, &of)->tm_hour;
	setenv("FENCEPOST_TEST", "a", 1); // want race
	return p;
}
int main(void) {
	pthread_t t[2];
	pthread_create(&t[0], 0, work, 0), pthread_create(&t[1], 0, work, 0);
	pthread_join(t[0], 0), pthread_join(t[1], 0);
	return 0;
}
`},
}

func TestThreads(t *testing.T) {
	for name, c := range compilers(t) {
		for _, p := range threadPrograms {
			t.Run(name+"/"+p.name, func(t *testing.T) {
				source := filepath.Join(t.TempDir(), "program.c")
				if err := os.WriteFile(source, []byte(p.text), 0o644); err != nil {
					t.Fatal(err)
				}
				rep, r, out := judged(t, fasttrack.Spec, compileProgram(t, c(source), source, "-pthread"))
				if r.Exit != 0 {
					t.Errorf("exit code %d: %s", r.Exit, out)
				}
				compareLines(t, source, rep)
			})
		}
	}
}

// TestForgotten checks that the address of a variable is known until its events have been taken, even if its memory has
// been reused.
func TestForgotten(t *testing.T) {
	var a *assembler
	got := map[uint64]int{}
	a = newAssembler(func(events []cpu.Event) {
		for _, e := range events {
			got[a.memory.address[e.Object]]++
		}
	})
	c := a.thread(0)
	for i := range uint64(3) {
		a.memory.access(c, 1<<16+8*i, 8, cpu.Write, 0)
		a.memory.forget(c, 1<<16+8*i, 8)
		if i == 1 {
			a.flush()
		}
	}
	a.flush()
	if want := map[uint64]int{1 << 16: 2, 1<<16 + 8: 2, 1<<16 + 16: 2}; !maps.Equal(got, want) || a.memory.count != 2 {
		t.Errorf("events of %v, want %v; %d variables, want two", got, want, a.memory.count)
	}
}

// TestRecycled checks that all threads are judged if a program has more threads than a detector can distinguish.
// Accesses without order race. A thread that joins another is ordered after it even if its number has been reused.
func TestRecycled(t *testing.T) {
	const n = cpu.MaxThreads + 500
	raced := map[uint32]int{}
	d := fasttrack.Spec.New(func(r cpu.Race) { raced[r.Variable]++ })
	w := newWritten()
	a := newAssembler(func(events []cpu.Event) {
		w.add(events)
		d.Events(slices.Clone(events))
	})
	begin := func(number uint32) *thread {
		c := a.thread(number)
		a.ticketed(c, kindBegin, 0, 0, 0, 0)
		return c
	}
	write := func(c *thread, address uint64) { a.memory.access(c, address, 8, cpu.Write, 0) }
	variable := func(i uint64) uint64 { return 1<<20 + 8*i }
	const shared = 1 << 16
	first := begin(0)
	for i := range uint32(n) {
		a.ticketed(first, kindFork, 0, 0, uint64(i+1), 0)
		c := begin(i + 1)
		write(c, variable(uint64(i)))
		if i == n-2 || i == n-1 {
			write(c, shared)
		}
		a.ticketed(c, kindEnd, 0, 0, 0, 0)
	}
	a.ticketed(first, kindFork, 0, 0, n+1, 0)
	other := begin(n + 1)
	for i := range uint32(n) {
		joiner := first
		if i%2 == 0 {
			joiner = other
		}
		a.ticketed(joiner, kindJoin, 0, 0, uint64(i+1), 0)
		write(joiner, variable(uint64(i)))
	}
	a.flush()
	w.check(t)
	v, _ := a.memory.whole(shared, 8)
	if len(raced) != 1 || raced[v] != 1 || len(a.problems) != 1 || len(a.ids) != cpu.MaxThreads {
		t.Errorf("races on %v, want one on %d; %d threads; problems %q", raced, v, len(a.ids), a.problems)
	}
}
