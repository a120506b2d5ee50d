package record

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"fencepost.dev/fencepost/internal/cpu"
	"fencepost.dev/fencepost/internal/cpu/fasttrack"
)

// stringCalls are calls of functions of the C library, by name. Each call accesses the last byte that another thread
// writes.
var stringCalls = map[string]string{
	"strnlen":           "sink = strnlen(s, 6)",
	"strncat":           "strncat(s, \"xyz\", 1)",
	"stpcpy":            "stpcpy(s, \"fedcba\")",
	"strchr":            "sink = strchr(s, 'f') != 0",
	"strrchr":           "sink = strrchr(s, 'a') != 0",
	"strstr":            "sink = strstr(s, \"ef\") != 0",
	"memchr":            "sink = memchr(s, 'f', 60) != 0",
	"strncmp":           "sink = strncmp(s, \"abcdex\", 6)",
	"strcasecmp":        "sink = strcasecmp(s, \"ABCDEX\")",
	"strncasecmp":       "sink = strncasecmp(s, \"ABCDEX\", 9)",
	"strdup":            "copy = strdup(s)",
	"strndup":           "copy = strndup(s, 6)",
	"bzero":             "bzero(s, 6)",
	"snprintf":          "snprintf(s, 60, \"%d\", 54321)",
	"sprintf":           "sprintf(s, \"edcba\")",
	"pwrite":            "pwrite(file, s, 6, 0)",
	"pread":             "pread(file, s, 6, 0)",
	"fwrite":            "fwrite(s, 2, 3, stream)",
	"fputs":             "fputs(s, stream)",
	"fread":             "rewind(stream), fread(s, 1, 6, stream)",
	"fgets":             "rewind(stream), fgets(s, 7, stream)",
	"recv":              "recv(ends[0], s, 6, 0)",
	"send":              "send(ends[0], s, 6, 0)",
	"__builtin_memcpy":  "__builtin_memcpy(s, \"fedcba\", 6)",
	"__builtin_memmove": "__builtin_memmove(s, \"fedcba\", 6)",
	"__builtin_memset":  "__builtin_memset(s, 'a', 6)",
	"mempcpy":           "mempcpy(s, \"fedcba\", 6)",
	"strspn":            "sink = strspn(s, \"abcde\")",
	"strcspn":           "sink = strcspn(s, \"f\")",
	"strpbrk":           "sink = strpbrk(s, \"xf\") != 0",
	"strtok_r":          "char *rest; sink = strtok_r(s, \"f\", &rest) != 0",
	"strtol":            "sink = strtol(s, NULL, 15)",
	"strtoull":          "sink = strtoull(s, NULL, 15)",
	"strtod":            "memcpy(s, \"12345\", 5), sink = strtod(s, NULL)",
	"atoi":              "memcpy(s, \"12345\", 5), sink = atoi(s)",
	"atof":              "memcpy(s, \"12345\", 5), sink = atof(s)",
	"qsort":             "qsort(s, 3, 2, equal)",
	"qsort_r":           "qsort_r(s, 3, 2, equal_r, NULL)",
	"wmemcpy":           "wmemcpy((wchar_t *)s, wide, 2)",
	"wmemmove":          "wmemmove((wchar_t *)s, wide, 2)",
	"wmemset":           "wmemset((wchar_t *)s, 0, 2)",
	"wcslen":            "sink = wcslen((wchar_t *)s)",
	"wcscpy":            "wcscpy((wchar_t *)s, wide)",
	"sscanf":            "sscanf(\"x7\", \"%*[a-z]%ld\", (long *)s)",
	"sscanf_text":       "sscanf(\"abcdef\", \"%5c\", copies), sscanf(\"abcdef x\", \"%20s\", s)",
	"sscanf_set":        "sscanf(\"]bcde;\", \"%[]a-e]\", s)",
	"sscanf_double":     "sscanf(\"2.5\", \"%lf\", (double *)s)",
	"sscanf_from":       "memset(s, ' ', 5), sscanf(s, \"%1s\", copies)",
	"fscanf":            "rewind(numbers), fscanf(numbers, \"%ld\", (long *)s)",
	"getline":           "char *l = NULL; size_t n = 0; rewind(numbers), getline(&l, &n, numbers), free(l), *(size_t *)s = n",
	"asprintf":          "asprintf((char **)s, \"a\")",
	"sprintf_text":      "sprintf(copies, \"%d %*d %.2f %s\", 1, 2, 3, 4.0, s)",
	"sprintf_precision": "sprintf(copies, \"%.*s%-5.6s\", 2, s, s)",
	"sprintf_error":     "sprintf(copies, \"%m %s %y\", s)",
	"sprintf_n":         "snprintf(copies, 9, \"%%%ld%ln\", 5L, (long *)s)",
	"fprintf":           "fprintf(stream, \"%s\", s)",
	"vsnprintf":         "vprints(s, \"%d\", 54321)",
	"strtok_rest":       "char text[] = \"a b\"; strtok_r(text, \" \", (char **)s)",
	"strtok":            "strtok(s, \"f\")",
	"strsep":            "char *rest = s; strsep(&rest, \"f\")",
	"time":              "time((time_t *)s)",
	"localtime_r":       "time_t zero = 0; localtime_r(&zero, (struct tm *)s)",
	"gmtime_r":          "struct tm tm; gmtime_r((memset(s, 0, 8), (time_t *)s), &tm)",
	"mktime":            "mktime((struct tm *)s)",
	"strftime":          "struct tm tm = {0}; strftime(s, 20, \"%Y-%m-%d\", &tm)",
	"clock_gettime":     "clock_gettime(CLOCK_MONOTONIC, (struct timespec *)s)",
	"gettimeofday":      "gettimeofday((struct timeval *)s, NULL)",
	"getcwd":            "chdir(\"/dev/shm\"), getcwd(s, 60)",
	"pipe":              "pipe((int *)s)",
	"getrandom":         "getrandom(s, 6, 0)",
	"times":             "times((struct tms *)s)",
	"inet_ntop":         "inet_ntop(AF_INET, &file, s, 60)",
	"modf":              "sink = modf(sink + 0.5, (double *)s)",
	"sincos":            "sincos(sink, (double *)s, (double *)(s + 8))",
	"erand48":           "sink = erand48((unsigned short *)s)",
	"bcmp":              "sink = bcmp(s, copies, sink & 1 ? 6 : 7)",
	"memcmp":            "sink = memcmp(s, copies, sink & 1 ? 6 : 7) == 0",
	"bcopy":             "bcopy(\"fedcba\", s, 6)",
	"memccpy":           "memccpy(s, copies, 1, 6)",
	"memmem":            "sink = memmem(s, 60, \"ef\", 2) != 0",
	"memrchr":           "sink = memrchr(s, 'c', 6) != 0",
	"strcasestr":        "sink = strcasestr(s, \"EF\") != 0",
	"stpncpy":           "stpncpy(s, \"a\", 6)",
	"mbstowcs":          "mbstowcs((wchar_t *)s, \"ab\", 3)",
	"wmemcmp":           "sink = wmemcmp((wchar_t *)s, wide, 2)",
	"readv":             "struct iovec v[] = {{copies, 3}, {s, 60}}; preadv(file, v, 2, 0)",
	"writev":            "struct iovec v[] = {{copies, 3}, {s, 6}}; writev(ends[0], v, 2)",
	"recvmsg":           "struct iovec v = {s, 6}; struct msghdr m = {.msg_iov = &v, .msg_iovlen = 1}; send(ends[1], copies, 6, 0), recvmsg(ends[0], &m, 0)",
	"pread64":           "pread64(file, s, 6, 0)",
	"pthread_join":      "pthread_t t; pthread_create(&t, NULL, nothing, NULL), pthread_join(t, (void **)s)",
}

// TestStringFunctions checks that a function of the C library races with a thread that accesses the sixth byte, and not
// with a thread that accesses a byte that the function does not touch.
func TestStringFunctions(t *testing.T) {
	var text, declared, calls, writes strings.Builder
	for name, call := range stringCalls {
		fmt.Fprintf(&declared, "_Alignas(16) char of_%s[80] = \"abcdef\";\n", name)
		fmt.Fprintf(&calls, "\t{ char *s = of_%s; %s; }\n", name, call)
		fmt.Fprintf(&writes, "\tof_%s[5] = 'f', of_%[1]s[70] = 1;\n", name)
	}
	fmt.Fprintf(&text, `
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <math.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/times.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>
#include <wchar.h>
%s
static wchar_t wide[3] = L"ab";
static int equal(const void *a, const void *b) { return 0; }
static int equal_r(const void *a, const void *b, void *more) { return 0; }
static volatile long sink;
static char *volatile copy;
static int file, ends[2];
static FILE *stream, *numbers;
static char copies[80] = "abcdef";
static void *nothing(void *unused) { return unused; }
static void vprints(char *to, const char *format, ...) {
	va_list list;
	va_start(list, format);
	vsnprintf(to, 60, format, list);
	va_end(list);
}
static void *call(void *unused) {
%s	return unused;
}
static void *change(void *unused) {
%s	return unused;
}
int main(void) {
	pthread_t t[2];
	char *end = "none";
	if (strtol("1", &end, 1) || *end != 'n')
		return 1;
	stream = tmpfile(), file = fileno(stream);
	fputs("abcdefghi", stream), fflush(stream);
	numbers = tmpfile();
	fputs("123\n", numbers), fflush(numbers);
	socketpair(AF_UNIX, SOCK_STREAM, 0, ends);
	send(ends[1], "abcdef", 6, 0);
	pthread_create(&t[0], NULL, call, NULL);
	pthread_create(&t[1], NULL, change, NULL);
	pthread_join(t[0], NULL);
	pthread_join(t[1], NULL);
	return 0;
}
`, &declared, &calls, &writes)
	for name, c := range compilers(t) {
		file := filepath.Join(t.TempDir(), "strings.c")
		if err := os.WriteFile(file, []byte(text.String()), 0o644); err != nil {
			t.Fatal(err)
		}
		rep, r, out := judged(t, fasttrack.Spec, compileProgram(t, c(file), file, "-lm"))
		if r.Exit != 0 {
			t.Fatalf("%s: exit code %d: %s", name, r.Exit, out)
		}
		found := map[string]bool{}
		for _, f := range rep.Findings {
			o := f.Accesses[0].Object
			if found[o.Name] = true; o.Offset == 70 {
				t.Errorf("%s: a race on a byte of %s that nobody else accesses", name, o.Name)
			}
		}
		for call := range stringCalls {
			if !found["of_"+call] {
				t.Errorf("%s: no race of %s", name, call)
			}
		}
	}
}

// TestUnchanged checks that programs have the results that they have without the recorder: errors of streams in memory,
// calls that do nothing, functions of the same name, and a plugin that alone needs the mathematical library.
func TestUnchanged(t *testing.T) {
	const source = `
#include <dlfcn.h>
#include <errno.h>
#include <string.h>
extern int swab(const void *, void *, long);
typedef struct FILE FILE;
extern FILE *open_memstream(char **, unsigned long *), *fmemopen(void *, unsigned long, const char *);
extern int fprintf(FILE *, const char *, ...), fflush(FILE *);
extern unsigned long fread(void *, unsigned long, unsigned long, FILE *);
extern char *fgets(char *, int, FILE *);
int getline(int x) { return x + 1; }
int atoll(int x) { return x + 2; }
int main(int n, char **args) {
	char *text, line[9];
	unsigned long size;
	FILE *to = open_memstream(&text, &size), *from = fmemopen("ab", 2, "r");
	errno = ENOENT;
	fprintf(to, "%m");
	fflush(to);
	if (strcmp(text, strerror(ENOENT)))
		return 1;
	errno = 0;
	while (fgets(line, sizeof line, from))
		;
	if (errno)
		return 2;
	swab("ab", line, -2);
	if (fread(line, 0, 1, 0))
		return 3;
	if (getline(1) + atoll(1) != 5)
		return 4;
	void *plugin = dlopen(args[1], RTLD_NOW | RTLD_LOCAL);
	double (*f)(double) = plugin ? dlsym(plugin, "f") : 0;
	return !f || f(0) != 1;
}
`
	const plugin = "extern void sincos(double, double *, double *);\ndouble f(double x) { double a, b; sincos(x, &a, &b); return a + b; }\n"
	for name, c := range compilers(t) {
		dir := t.TempDir()
		file, part, library := filepath.Join(dir, "unchanged.c"), filepath.Join(dir, "plugin.c"), filepath.Join(dir, "plugin.so")
		for file, text := range map[string]string{file: source, part: plugin} {
			if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		if out, err := exec.Command(c(part).Path, "-shared", "-fPIC", part, "-o", library, "-lm").CombinedOutput(); err != nil {
			t.Fatalf("%s: %s", name, out)
		}
		if _, r, out := judged(t, fasttrack.Spec, compileProgram(t, c(file), file, "-fno-builtin"), library); r.Exit != 0 || r.Signal != 0 {
			t.Errorf("%s: exit code %d, signal %v: %s", name, r.Exit, r.Signal, out)
		}
	}
}

// TestSignalsAtEnd checks that signals may arrive while threads end.
func TestSignalsAtEnd(t *testing.T) {
	const source = `
#include <pthread.h>
#include <signal.h>
#include <sys/time.h>
static volatile sig_atomic_t ticks;
static void tick(int unused) { ticks = ticks + 1; }
static void *work(void *unused) { return unused; }
int main(void) {
	struct itimerval every = {{0, 20}, {0, 20}};
	signal(SIGALRM, tick);
	setitimer(ITIMER_REAL, &every, NULL);
	for (int i = 0; i < 200; i++) {
		pthread_t t[4];
		for (int j = 0; j < 4; j++)
			pthread_create(&t[j], NULL, work, NULL);
		for (int j = 0; j < 4; j++)
			pthread_join(t[j], NULL);
	}
	return 0;
}
`
	for name, c := range compilers(t) {
		file := filepath.Join(t.TempDir(), "signals.c")
		if err := os.WriteFile(file, []byte(source), 0o644); err != nil {
			t.Fatal(err)
		}
		r, err := Run(context.Background(), Options{Path: compileProgram(t, c(file), file), Process: func(*Names) func([]cpu.Event) { return func([]cpu.Event) {} }})
		if err != nil || r.Exit != 0 || r.Signal != 0 {
			t.Errorf("%s: exit code %d, signal %v, %v", name, r.Exit, r.Signal, err)
		}
	}
}
