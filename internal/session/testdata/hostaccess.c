// Host code touches managed and pinned memory. The first argument is the scenario. What a scenario computes must be as without a checker:
// main prints "right" then.
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

int cudaMallocManaged(void **, size_t, unsigned), cudaMallocHost(void **, size_t), cudaMalloc(void **, size_t), cudaDeviceSynchronize(void);
int cudaMemsetAsync(void *, int, size_t, void *), cudaMemcpyAsync(void *, const void *, size_t, int, void *), cudaStreamCreate(void **);
int cudaStreamSynchronize(void *), cudaEventCreate(void **), cudaEventRecord(void *, void *), cudaEventSynchronize(void *);
int cudaLaunchHostFunc(void *, void (*)(void *), void *);

enum { size = 64 << 10 };
static char *managed, *pinned, *device;
static void *stream, *event;
static sigjmp_buf back;
static volatile int handled;

static void jump(int s) { siglongjmp(back, s); }

static void touch(int s) {
  managed[100] = 9; // a page that is in use
  struct stat *info = (struct stat *)(managed + 4096);
  handled = !stat("/", info) && S_ISDIR(info->st_mode) ? s : -1;
}

static void *other(void *p) {
  managed[8192] = 3;
  return p;
}

static void reads(void *p) { handled = *(char *)p == 1; }
static void writes(void *p) { *(char *)p = 2; } // in a function
static void nothing(void *p) {}

static int scenario(const char *which) {
  if (!strcmp(which, "read")) return managed[7] == 1;
  if (!strcmp(which, "write")) return (managed[7] = 2) == 2;
  if (!strcmp(which, "update")) return ++managed[7] == 2;
  if (!strcmp(which, "beside")) return pinned[7] == 0; // no work uses it
  if (!strcmp(which, "synchronised")) return !cudaDeviceSynchronize() && managed[7] == 1;
  if (!strcmp(which, "stream")) return !cudaStreamSynchronize(stream) && managed[7] == 1;
  if (!strcmp(which, "event")) return !cudaEventSynchronize(event) && managed[7] == 1;
  if (!strcmp(which, "function reads")) return !cudaLaunchHostFunc(stream, reads, managed + 7) && handled;
  if (!strcmp(which, "function writes")) return !cudaLaunchHostFunc(NULL, writes, managed + 7) && !cudaLaunchHostFunc(stream, writes, managed + 7);
  if (!strcmp(which, "function beside")) { // another stream's
    void *other;
    return !cudaStreamCreate(&other) && !cudaLaunchHostFunc(other, writes, managed + 7);
  }
  if (!strcmp(which, "read after a function")) return !cudaLaunchHostFunc(stream, nothing, NULL) && managed[7] == 1; // orders nothing
  if (!strcmp(which, "source")) { // the copy may still read it
    cudaDeviceSynchronize();
    cudaMemcpyAsync(device, pinned, size, 1, stream);
    return (pinned[size - 1] = 4) == 4;
  }
  if (!strcmp(which, "printed")) { // system calls come between
    if (write(2, "", 0) || access("/", F_OK)) return 0;
    return managed[7] == 1;
  }
  if (!strcmp(which, "read call")) {
    int fd = open("/dev/zero", O_RDONLY);
    return read(fd, managed + 5000, 100) == 100 && !close(fd);
  }
  if (!strcmp(which, "write call")) {
    int fd = open("/dev/null", O_WRONLY);
    return write(fd, managed + 5000, 100) == 100 && !close(fd);
  }
  if (!strcmp(which, "other calls")) { // that reach the pages by pointers within pointers, and one that is not known
    struct stat *info = (struct stat *)(managed + 4096);
    struct iovec *v = (struct iovec *)(managed + 12288);
    int fd = open("/dev/zero", O_RDONLY);
    v->iov_base = managed + 20480, v->iov_len = 10;
    strcpy(managed + 16384, "/");
    return readv(fd, v, 1) == 10 && !stat(managed + 16384, info) && S_ISDIR(info->st_mode) && !statx(0, managed + 16384, 0, STATX_TYPE, (struct statx *)(managed + 32768));
  }
  if (!strcmp(which, "crash")) return *(volatile int *)16;
  if (!strcmp(which, "handler")) { // of its own, set while work is pending
    signal(SIGSEGV, jump);
    if (!sigsetjmp(back, 1)) *(volatile int *)16 = 1;
    struct sigaction a = {.sa_handler = touch};
    sigfillset(&a.sa_mask);
    sigaction(SIGALRM, &a, NULL);
    raise(SIGALRM);
    cudaMemsetAsync(managed, 1, size, stream);
    raise(SIGALRM);
    return handled == SIGALRM;
  }
  if (!strcmp(which, "blocked")) { // the signals of the guard are
    sigset_t all;
    sigfillset(&all);
    sigprocmask(SIG_BLOCK, &all, NULL);
    cudaMemsetAsync(managed, 1, size, stream);
    return managed[8192] == 1 && !access("/", F_OK);
  }
  if (!strcmp(which, "fork")) {
    int status = 1, child = fork();
    if (!child) _exit(managed[7] == 1 && !system("exit 0") ? 0 : 2);
    return waitpid(child, &status, 0) == child && status == 0 && !system("exit 0");
  }
  if (!strcmp(which, "thread")) {
    pthread_t t;
    if (pthread_create(&t, NULL, other, NULL) || pthread_join(t, NULL)) return 0;
    cudaMemsetAsync(managed, 1, size, stream);
    return managed[8192] == 1;
  }
  return 0;
}

int main(int argc, char **argv) {
  cudaMallocManaged((void **)&managed, size, 1), cudaMallocHost((void **)&pinned, size), cudaMalloc((void **)&device, size);
  cudaStreamCreate(&stream), cudaEventCreate(&event);
  memset(managed, 0, size);
  cudaMemsetAsync(managed, 1, size, stream);
  cudaEventRecord(event, stream);
  puts(scenario(argv[1]) ? "right" : "wrong");
  return 0;
}
