package record

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"fencepost.dev/fencepost/internal/cpu/fasttrack"
)

// The programs below use parts of OpenMP for which verdicts with one of the two compilers were once wrong. Each program
// is judged several times, because the order of tasks varies.
const inTeam = `
#include <omp.h>
#include <time.h>
static void pause_ms(int n) { struct timespec t = {0, n * 1000000L}; nanosleep(&t, 0); }
static volatile int sink;
int x, y, a[40];
int main(void) {
#pragma omp parallel num_threads(3)
#pragma omp single
	{
`

const noTeam = `
#include <omp.h>
static volatile int sink;
int x, y, a[40];
int main(void) {
	{
`

// There are two teams of two threads. The first team, and libomp's first thread with it, has ended before the second
// begins.
const twoTeams = `
#include <pthread.h>
#include <semaphore.h>
static sem_t began, go;
int x;
static void add(void) {
#pragma omp parallel num_threads(2)
#pragma omp critical
	x++;
}
static void *first(void *p) {
	add();
	sem_post(&began);
	sem_wait(&go);
	return p;
}
static void *second(void *p) {
	add();
	sem_post(&go);
	pthread_join(*(pthread_t *)p, 0);
	add();
	return 0;
}
int main(void) {
	{
`

var openMPPrograms = []struct{ name, begin, text string }{
	{"dependences of tasks with other parents", inTeam, `
#pragma omp task
		{
#pragma omp task depend(out: x)
			x = 1; // want race
		}
#pragma omp task
		{
#pragma omp task depend(inout: x)
			x++; // want race
		}`},
	{"taskwait with a dependence", inTeam, `
#pragma omp task depend(out: x)
		{ pause_ms(2); x = 1; }
#pragma omp taskwait depend(in: x)
		x++;`},
	{"taskwait with another dependence", inTeam, `
#pragma omp task depend(out: x)
		{ pause_ms(2); x = 1; }
#pragma omp task depend(out: y)
		{ pause_ms(2); y = 1; } // want race
#pragma omp taskwait depend(in: x)
		sink = y; // want race`},
	{"undeferred task with a dependence", inTeam, `
#pragma omp task depend(out: x)
		{ pause_ms(2); x = 1; }
#pragma omp task depend(inout: x) if (0)
		x++;
		x++;`},
	{"target with a dependence", inTeam, `
#pragma omp task depend(out: x)
		{ pause_ms(2); x = 1; }
#pragma omp target map(tofrom: x) depend(inout: x)
		x++;
		x++;`},
	{"target nowait", inTeam, `
#pragma omp target map(tofrom: x) nowait
		x = 1; // want race
		x++; // want race
#pragma omp taskwait`},
	{"target nowait, waited for", inTeam, `
		int k = 3;
#pragma omp target map(tofrom: x) nowait firstprivate(k)
		x = k;
		k = 4;
#pragma omp taskwait
		x++;
		if (x != 4)
			__builtin_abort();`},
	{"targets nowait with dependences", inTeam, `
		double f = 2.5;
		int w[5] = {1, 2, 3, 4, 5};
#pragma omp target map(tofrom: a) nowait depend(out: a) firstprivate(f, w)
		for (int i = 0; i < 32; i++) a[i] = i * f + w[i % 5];
		f = 0, w[0] = 9;
#pragma omp target map(tofrom: a) nowait depend(inout: a)
		for (int i = 0; i < 32; i++) a[i]++;
#pragma omp task depend(inout: a)
		a[0]++;
#pragma omp taskwait
		if (a[0] != 3 || a[4] != 16)
			__builtin_abort();`},
	{"target nowait outside of a region", noTeam, `
#pragma omp target map(tofrom: x) nowait
		x = 1; // want race
		x++; // want race
#pragma omp taskwait`},
	{"teams", noTeam, `
#pragma omp teams num_teams(4)
		x++; // want race`},
	{"teams with a reduction", noTeam, `
#pragma omp teams num_teams(4) reduction(+: x)
		x += 1 + omp_get_team_num();
		if (x < 1)
			__builtin_abort();`},
	{"distributed loop", noTeam, `
#pragma omp teams distribute parallel for num_teams(3) thread_limit(2) dist_schedule(static, 1)
		for (int i = 0; i < 39; i++)
			a[i + 1] = a[i] + 1; // want race`},
	{"distributed loop without a race", noTeam, `
#pragma omp teams distribute parallel for num_teams(3) thread_limit(2)
		for (int i = 0; i < 39; i++)
			a[i] = i;
		x = a[0];`},
	{"target teams", noTeam, `
#pragma omp target teams map(tofrom: x) num_teams(4)
		x++; // want race`},
	{"target teams with private variables", noTeam, `
#pragma omp target teams map(tofrom: a) num_teams(4)
		{
			int mine[4], *volatile p = mine;
			for (int i = 0; i < 4; i++) p[i] = i;
			a[omp_get_team_num()] = p[2];
		}
		x = a[0];`},
	{"many dependences", inTeam, `
#pragma omp task depend(out: a[0], a[1], a[2], a[3], a[4], a[5], a[6], a[7], a[8], a[9], a[10], a[11], a[12], a[13], a[14], a[15], a[16], a[17], a[18], x)
		{ pause_ms(2); x = 1; }
#pragma omp task depend(in: y, a[20], a[21], a[22], a[23], a[24], a[25], a[26], a[27], a[28], a[29], a[30], a[31], a[32], a[33], a[34], a[35], a[36]) depend(inout: x)
		x++;
#pragma omp taskwait depend(in: a[20], a[21], a[22], a[23], a[24], a[25], a[26], a[27], a[28], a[29], a[30], a[31], a[32], a[33], a[34], a[35], a[36], x)
		sink = x;`},
	{"many dependences, one missing", inTeam, `
#pragma omp task depend(out: a[0], a[1], a[2], a[3], a[4], a[5], a[6], a[7], a[8], a[9], a[10], a[11], a[12], a[13], a[14], a[15], a[16], a[17], a[18], x)
		{ pause_ms(2); x = 1; } // want race
#pragma omp task depend(in: y, a[20], a[21], a[22], a[23], a[24], a[25], a[26], a[27], a[28], a[29], a[30], a[31], a[32], a[33], a[34], a[35], a[36])
		x++; // want race`},
	{"doacross waits for another iteration", noTeam, `
#pragma omp parallel for num_threads(3) ordered(1) schedule(static, 1)
		for (int i = 2; i < 20; i++) {
#pragma omp ordered depend(sink: i - 2)
			a[i] = a[i - 1] + 1; // want race
#pragma omp ordered depend(source)
		}`},
	{"doacross of two levels", noTeam, `
#pragma omp parallel for num_threads(3) ordered(2) schedule(static, 1)
		for (int i = 1; i < 8; i++)
			for (int j = 1; j < 5; j++) {
#pragma omp ordered depend(sink: i - 1, j) depend(sink: i, j - 1)
				a[i * 5 + j] = a[i * 5 - 5 + j] + a[i * 5 + j - 1];
#pragma omp ordered depend(source)
			}`},
	{"doacross of two levels, one ahead", noTeam, `
#pragma omp parallel for num_threads(3) ordered(2) schedule(static, 1)
		for (int i = 1; i < 7; i++)
			for (int j = 1; j < 5; j++) {
#pragma omp ordered depend(sink: i - 1, j)
				a[i * 6 + j - 6] = j < 4 && i > 1 ? a[i * 6 - 6 + j - 5] : 0; // want race
#pragma omp ordered depend(source)
			}`},
	{"doacross of unsigned long", noTeam, `
#pragma omp parallel for num_threads(3) ordered(1) schedule(dynamic, 2)
		for (unsigned long i = 1; i < 30; i++) {
#pragma omp ordered depend(sink: i - 1)
			a[i] = a[i - 1] + 1;
#pragma omp ordered depend(source)
		}`},
	{"sections that one thread could execute", noTeam, `
#pragma omp parallel sections num_threads(3)
		{
#pragma omp section
			x = 1; // want race
#pragma omp section
			x = 2; // want race
		}`},
	{"single regions that one thread could execute", noTeam, `
#pragma omp parallel num_threads(3)
		{
#pragma omp single nowait
			x = 1; // want race
#pragma omp single nowait
			x = 2; // want race
		}`},
	{"dynamic loop that one thread could execute", noTeam, `
#pragma omp parallel for schedule(dynamic) num_threads(3)
		for (int i = 0; i < 5; i++)
			a[i + 1] = a[i]; // want race`},
	{"guided loop that one thread could execute", noTeam, `
#pragma omp parallel for schedule(guided) num_threads(3)
		for (unsigned long i = 0; i < 8; i++)
			x += i; // want race`},
	{"shared out without a race", noTeam, `
#pragma omp parallel num_threads(3)
		for (int k = 0; k < 30; k++) {
#pragma omp single
			x++;
#pragma omp for schedule(dynamic)
			for (int i = 0; i < 5; i++) a[i] += x;
#pragma omp sections
			{
				a[0]++;
#pragma omp section
				a[1]++;
			}
		}
		if (x != 30 || a[2] != 465)
			__builtin_abort();`},
	{"regions that others wait for", noTeam, `
#pragma omp parallel num_threads(4)
		{
#pragma omp for ordered schedule(dynamic)
			for (int i = 0; i < 400; i++) {
#pragma omp ordered
				x += x == i;
			}
			for (int i = 0; i < 400; i++) {
#pragma omp critical
				{
					y++;
#pragma omp critical (inner)
					a[0]++;
				}
			}
		}
		if (x != 400 || y != 1600)
			__builtin_abort();`},
	{"tasks that use what is their thread's", inTeam, `
		a[omp_get_thread_num()]++;
		for (int i = 0; i < 30; i++)
#pragma omp task
			{
				a[omp_get_thread_num()]++;
#pragma omp task
				a[omp_get_thread_num()]++;
#pragma omp taskwait
				a[omp_get_thread_num()]++;
			}
#pragma omp taskloop nogroup
		for (int i = 0; i < 30; i++)
			a[omp_get_thread_num()]++;`},
	{"a task that has a number and one that has none", inTeam, `
#pragma omp task
		{ pause_ms(1); a[omp_get_thread_num()]++, x++; } // want race
#pragma omp task
		{ pause_ms(1); x++; } // want race
#pragma omp taskwait`},
	{"teams of threads that end", twoTeams, `
		pthread_t t, u;
		sem_init(&began, 0, 0), sem_init(&go, 0, 0);
		pthread_create(&t, 0, first, 0);
		sem_wait(&began);
		pthread_create(&u, 0, second, &t);
		pthread_join(u, 0);
		if (x != 6)
			__builtin_abort();`},
	{"loops of tasks in tasks of a loop", inTeam, `
#pragma omp taskloop grainsize(1)
		for (int i = 0; i < 6; i++) {
#pragma omp taskloop grainsize(2)
			for (int j = 0; j < 6; j++) a[i * 6 + j] = j;
			a[i * 6]++;
		}`},
	{"stores that could be merged", inTeam, `
#pragma omp task
		for (int i = 0; i < 9; i++)
			if (i % 2)
				x = 1; // want race
			else
				y = 2;
#pragma omp task
		x = 5; // want race
#pragma omp taskwait
		y++;`},
}

func TestOpenMP(t *testing.T) {
	for name, c := range compilers(t) {
		for i, p := range openMPPrograms {
			if !taken(name, i, 4) {
				continue
			}
			t.Run(name+"/"+p.name, func(t *testing.T) {
				source := filepath.Join(t.TempDir(), "omp_program.c")
				if err := os.WriteFile(source, []byte(p.begin+p.text+"\n\t}\n\treturn 0;\n}\n"), 0o644); err != nil {
					t.Fatal(err)
				}
				program := compileProgram(t, c(source), source)
				for range 3 {
					rep, r, out := judged(t, fasttrack.Spec, program)
					if r.Exit != 0 || r.Signal != 0 {
						t.Fatalf("exit code %d, signal %v: %s", r.Exit, r.Signal, out)
					}
					compareLines(t, source, rep)
				}
			})
		}
	}
}

// TestLongVectors judges a loop that requests longer vectors than a compiler instruments.
func TestLongVectors(t *testing.T) {
	const text = `
double v[300];
int main(void) {
#pragma omp parallel for simd simdlen(16) num_threads(3)
	for (int i = 0; i < 280; i++)
		v[i] = v[i + 16] * 2; // want race
	return 0;
}
`
	source := filepath.Join(t.TempDir(), "omp_vectors.c")
	if err := os.WriteFile(source, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	for name, c := range compilers(t) {
		for _, flags := range [][]string{nil, {"-mavx"}} {
			if flags != nil && runtime.GOARCH != "amd64" {
				continue
			}
			t.Run(fmt.Sprint(name, flags), func(t *testing.T) {
				rep, _, _ := judged(t, fasttrack.Spec, compileProgram(t, c(source), source, flags...))
				compareLines(t, source, rep)
			})
		}
	}
}

// TestFirstThreadEnds judges accesses of other threads after the first thread has ended. A signal that a thread waits
// for orders its sender before the thread.
func TestFirstThreadEnds(t *testing.T) {
	const text = `
#include <pthread.h>
#include <signal.h>
#include <time.h>
int x, message;
static sigset_t set;
static void *late(void *p) { struct timespec t = {0, 50000000}; nanosleep(&t, 0); x = 1; return 0; } // want race
static void *waits(void *p) { int n; sigwait(&set, &n); return message == 3 ? 0 : p; }
int main(void) {
	pthread_t t, u;
	sigemptyset(&set), sigaddset(&set, SIGUSR1);
	pthread_sigmask(SIG_BLOCK, &set, 0);
	pthread_create(&t, 0, waits, &t);
	message = 3;
	pthread_kill(t, SIGUSR1);
	pthread_join(t, 0);
	pthread_create(&u, 0, late, 0);
	x = 2; // want race
	pthread_exit(0);
}
`
	for name, c := range compilers(t) {
		source := filepath.Join(t.TempDir(), "first.c")
		if err := os.WriteFile(source, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		rep, r, out := judged(t, fasttrack.Spec, compileProgram(t, c(source), source, "-pthread"))
		if r.Exit != 0 {
			t.Errorf("%s: exit code %d: %s", name, r.Exit, out)
		}
		compareLines(t, source, rep)
	}
}

// TestFortran judges a program compiled by gfortran, which calls libgomp.
func TestFortran(t *testing.T) {
	path, err := exec.LookPath("gfortran")
	if err != nil {
		t.Skip("there is no gfortran")
	}
	source := filepath.Join(t.TempDir(), "program.f90")
	const text = `module m
integer :: total = 0
contains
subroutine add
total = total + 1 ! // want race
end subroutine
end module
program p
use m
use omp_lib
integer(omp_lock_kind) :: l
integer :: n, i, s, a(100), b(100)
n = 0; s = 0; b = 2
call omp_init_lock(l)
!$omp parallel num_threads(4)
call add
call omp_set_lock(l)
n = n + 1
call omp_unset_lock(l)
!$omp do reduction(+:s)
do i = 1, 100
s = s + i
end do
a = b ! // want race
!$omp single
!$omp task depend(out: n)
n = n + 1
!$omp end task
!$omp task depend(in: n)
if (n /= 5) stop 7
!$omp end task
!$omp end single
!$omp end parallel
if (s /= 5050) stop 8
end program
`
	if err := os.WriteFile(source, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	program := filepath.Join(t.TempDir(), "program")
	var out bytes.Buffer
	c := &Compiler{Path: path, Fortran: true, Recorder: recorder("gcc")}
	if code, err := c.Run(context.Background(), []string{"-O1", "-fopenmp", source, "-o", program, "-J" + t.TempDir()}, nil, &out, &out); err != nil || code != 0 || out.Len() > 0 {
		t.Fatalf("code %d, %v: %s", code, err, &out)
	}
	rep, r, printed := judged(t, fasttrack.Spec, program)
	if r.Exit != 0 {
		t.Fatalf("exit code %d: %s", r.Exit, printed)
	}
	if len(rep.Findings) > 0 && !strings.Contains(describe(rep.Findings[0]), "m::total") {
		t.Errorf("the variable of a module is in %s", describe(rep.Findings[0]))
	}
	compareLines(t, source, rep)
}
