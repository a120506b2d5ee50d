// interpreter.c does the calls of the CUDA API that its argument lists, right or wrong, and writes what each returns.
// hostprograms_test.go makes the lists, and says what must come of them.
#define _GNU_SOURCE
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

typedef struct { unsigned x, y, z; } dim3;
int cudaMalloc(void **, size_t), cudaFree(void *), cudaMallocHost(void **, size_t), cudaFreeHost(void *);
int cudaMallocManaged(void **, size_t, unsigned), cudaMallocAsync(void **, size_t, void *), cudaFreeAsync(void *, void *);
int cudaMemcpy(void *, const void *, size_t, int), cudaMemcpyAsync(void *, const void *, size_t, int, void *);
int cudaMemset(void *, int, size_t), cudaMemsetAsync(void *, int, size_t, void *);
int cudaStreamCreateWithFlags(void **, unsigned), cudaStreamDestroy(void *), cudaStreamSynchronize(void *), cudaStreamQuery(void *);
int cudaEventCreateWithFlags(void **, unsigned), cudaEventDestroy(void *), cudaEventRecord(void *, void *), cudaEventSynchronize(void *), cudaEventQuery(void *);
int cudaStreamWaitEvent(void *, void *, unsigned), cudaDeviceSynchronize(void), cudaDeviceReset(void), cudaGetLastError(void);
int cudaLibraryLoadData(void **, const void *, int *, void **, unsigned, int *, void **, unsigned), cudaLibraryGetKernel(void **, void *, const char *);
int cudaLaunchKernel(const void *, dim3, dim3, void **, size_t, void *);

static const char ptx[] =
    ".version 8.0\n.target sm_80\n.address_size 64\n"
    ".visible .entry put(.param .u64 p, .param .u32 v) {\n  .reg .u64 %a, %t; .reg .u32 %i, %v;\n  ld.param.u64 %a, [p]; ld.param.u32 %v, [v];\n"
    "  mov.u32 %i, %tid.x; mul.wide.u32 %t, %i, 4; add.u64 %a, %a, %t;\n  mov.u32 %i, %ctaid.x; add.u32 %v, %v, %i; st.global.u32 [%a], %v;\n  ret;\n}\n"
    ".visible .entry get(.param .u64 p, .param .u32 v) {\n  .reg .u64 %a, %t; .reg .u32 %i;\n  ld.param.u64 %a, [p];\n"
    "  mov.u32 %i, %tid.x; mul.wide.u32 %t, %i, 4; add.u64 %a, %a, %t;\n  ld.global.u32 %i, [%a];\n  ret;\n}\n";

enum { slots = 8, host_slot = 8, null_slot = 9, unmapped_slot = 10 };
static char host[1 << 16];
static char *mem[11] = {[host_slot] = host, [unmapped_slot] = (char *)0x10000000000};
static void *streams[6], *events[4], *kernels[3];

static int load(void) {
  void *library;
  int e = cudaLibraryLoadData(&library, ptx, NULL, NULL, 0, NULL, NULL, 0);
  if (!e) e = cudaLibraryGetKernel(&kernels[0], library, "put");
  if (!e) e = cudaLibraryGetKernel(&kernels[1], library, "get");
  kernels[2] = host;
  return e;
}

static void *stream(long i) { return i == -1 ? NULL : i == -2 ? (void *)2 : streams[i]; }

static char *at(long slot, long offset) { return mem[slot] + offset; }

static int launch(const long *a) {
  char *p = at(a[1], a[2]);
  int value = (int)a[7];
  void *args[] = {&p, &value};
  return cudaLaunchKernel(kernels[a[0]], (dim3){(unsigned)a[4], 1, 1}, (dim3){(unsigned)a[5], 1, 1}, args, (size_t)a[6], stream(a[3]));
}

static int child(long launches) {
  fflush(stdout);
  pid_t pid = fork();
  if (pid == 0) {
    void *p;
    const long a[8] = {0, 0, 0, -1, 1, 32, 0, 0};
    _exit(launches ? launch(a) : cudaMalloc(&p, 16));
  }
  int status = 0;
  waitpid(pid, &status, 0);
  return WEXITSTATUS(status);
}

static int step(char op, const long *a) {
  switch (op) {
    case 'm': return a[1] == 0 ? cudaMalloc((void **)&mem[a[0]], (size_t)a[2])
                   : a[1] == 1 ? cudaMallocManaged((void **)&mem[a[0]], (size_t)a[2], 1) : cudaMallocHost((void **)&mem[a[0]], (size_t)a[2]);
    case 'a': return cudaMallocAsync((void **)&mem[a[0]], (size_t)a[1], stream(a[2]));
    case 'f': return cudaFree(at(a[0], a[1]));
    case 'h': return cudaFreeHost(at(a[0], a[1]));
    case 'F': return cudaFreeAsync(at(a[0], a[1]), stream(a[2]));
    case 'c': return a[6] ? cudaMemcpyAsync(at(a[0], a[1]), at(a[2], a[3]), (size_t)a[4], (int)a[5], stream(a[7]))
                          : cudaMemcpy(at(a[0], a[1]), at(a[2], a[3]), (size_t)a[4], (int)a[5]);
    case 's': return a[4] ? cudaMemsetAsync(at(a[0], a[1]), (int)a[2], (size_t)a[3], stream(a[5])) : cudaMemset(at(a[0], a[1]), (int)a[2], (size_t)a[3]);
    case 'S': return cudaStreamCreateWithFlags(&streams[a[0]], (unsigned)a[1]);
    case 'D': return cudaStreamDestroy(streams[a[0]]);
    case 'z': return cudaStreamSynchronize(stream(a[0]));
    case 'Z': return cudaStreamQuery(stream(a[0]));
    case 'E': return cudaEventCreateWithFlags(&events[a[0]], (unsigned)a[1]);
    case 'X': return cudaEventDestroy(events[a[0]]);
    case 'R': return cudaEventRecord(events[a[0]], stream(a[1]));
    case 'W': return cudaStreamWaitEvent(stream(a[0]), events[a[1]], 0);
    case 'Y': return cudaEventSynchronize(events[a[0]]);
    case 'Q': return cudaEventQuery(events[a[0]]);
    case 'k': return launch(a);
    case 'e': return cudaGetLastError();
    case 'y': return cudaDeviceSynchronize();
    case 'r': return cudaDeviceReset() * 1000 + load();
    case 'o': return child(a[0]);
    case 'x':
      for (int fd = 3; fd < 1024; fd++) close(fd);
      return 0;
    case 'K': raise(SIGKILL); return 0;
    case 'q': exit((int)a[0]);
  }
  return -1;
}

int main(int argc, char **argv) {
  setvbuf(stdout, NULL, _IOLBF, 0);
  printf("%d\n", load());
  for (char *op = strtok(argv[1], ";"); op; op = strtok(NULL, ";")) {
    long a[8] = {0};
    char *p = op + 1;
    for (int i = 0; i < 8 && *p; i++) a[i] = strtol(p, &p, 0);
    printf("%d\n", step(*op, a));
  }
  (void)argc;
  return 0;
}
