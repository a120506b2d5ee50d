// The native side of the benchmark. It reads buffers from the standard input, runs a function on them repeatedly, and
// writes the time and the final contents of the buffers to the standard output.
//
// Input, in 8-byte words of the machine's byte order: the time to spend in milliseconds, the number of arguments, the
// arguments, the number of buffers, and for each buffer its size in bytes and its role. The bytes of all buffers
// follow. Before each run, buffers that the function writes get their initial contents.
// Output: a line "NANOSECONDS RUNS" with the median of the runs, then the bytes of the results.

#define _POSIX_C_SOURCE 200809L
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

typedef void function(void **buf, const uint64_t *arg);

#define KERNEL(name) function name;
#include "list.h"
#undef KERNEL

static const struct { const char *name; function *f; } functions[] = {
#define KERNEL(name) {#name, name},
#include "list.h"
#undef KERNEL
};

enum { INPUT, SCRATCH, RESULT }; // as type Role in kernel.go
enum { MOST_ARGS = 8, MOST_BUFFERS = 8, MOST_RUNS = 1001 };

static void need(int ok, const char *what)
{
    if (!ok) {
        fprintf(stderr, "native: %s\n", what);
        exit(1);
    }
}

static uint64_t word(void)
{
    uint64_t w;
    need(fread(&w, sizeof w, 1, stdin) == 1, "the input ends early");
    return w;
}

static uint64_t now(clockid_t clock)
{
    struct timespec t;
    clock_gettime(clock, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static int compare(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

int main(int argc, char **argv)
{
    static uint64_t times[MOST_RUNS];
    uint64_t arg[MOST_ARGS], size[MOST_BUFFERS], role[MOST_BUFFERS];
    void *buf[MOST_BUFFERS], *fresh[MOST_BUFFERS];
    function *f = NULL;
    need(argc == 2, "which function?");
    for (size_t i = 0; i < sizeof functions / sizeof *functions; i++)
        if (strcmp(argv[1], functions[i].name) == 0)
            f = functions[i].f;
    need(f != NULL, "no such function");

    uint64_t budget = word() * 1000000u, args = word();
    need(args <= MOST_ARGS, "too many arguments");
    for (uint64_t i = 0; i < args; i++)
        arg[i] = word();
    uint64_t buffers = word();
    need(buffers <= MOST_BUFFERS, "too many buffers");
    for (uint64_t i = 0; i < buffers; i++)
        size[i] = word(), role[i] = word();
    for (uint64_t i = 0; i < buffers; i++) {
        uint64_t room = (size[i] + 63) / 64 * 64;
        buf[i] = aligned_alloc(64, room), fresh[i] = malloc(room);
        need(buf[i] && fresh[i], "out of memory");
        need(fread(fresh[i], 1, size[i], stdin) == size[i], "the input ends early");
    }

    // Processor time excludes other work of the machine, but querying it takes longer than the short runs.
    clockid_t clock = CLOCK_MONOTONIC;
    int runs = 0;
    for (uint64_t begin = now(CLOCK_MONOTONIC); runs < MOST_RUNS && (runs < 5 || now(CLOCK_MONOTONIC) - begin < budget); runs++) {
        for (uint64_t i = 0; i < buffers; i++)
            if (role[i] != INPUT || runs == 0)
                memcpy(buf[i], fresh[i], size[i]);
        uint64_t start = now(clock);
        f(buf, arg);
        times[runs] = now(clock) - start;
        if (runs == 0 && times[0] > 200000)
            clock = CLOCK_PROCESS_CPUTIME_ID;
    }
    qsort(times, (size_t)runs, sizeof *times, compare);
    printf("%llu %d\n", (unsigned long long)times[runs / 2], runs);
    for (uint64_t i = 0; i < buffers; i++)
        if (role[i] == RESULT)
            fwrite(buf[i], 1, size[i], stdout);
    return fflush(stdout) != 0;
}
