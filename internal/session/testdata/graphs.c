// Launches of a graph whose nodes fill the same memory. The first argument is the scenario, the second, when there, adds the edge that
// orders them.
#include <stdio.h>
#include <string.h>

typedef struct { void *at; size_t pitch; unsigned value, size; size_t width, height; } fill;
typedef struct { void (*call)(void *); void *data; } host;
int cudaMalloc(void **, size_t), cudaMemset(void *, int, size_t), cudaDeviceSynchronize(void), cudaStreamCreateWithFlags(void **, unsigned);
int cudaMemsetAsync(void *, int, size_t, void *), cudaEventCreate(void **), cudaEventRecord(void *, void *), cudaStreamWaitEvent(void *, void *, unsigned);
int cudaStreamBeginCapture(void *, int), cudaStreamEndCapture(void *, void **), cudaLaunchHostFunc(void *, void (*)(void *), void *);
int cudaGraphCreate(void **, unsigned), cudaGraphInstantiate(void **, void *, unsigned long long), cudaGraphLaunch(void *, void *);
int cudaGraphAddMemsetNode(void **, void *, void **, size_t, const fill *), cudaGraphAddHostNode(void **, void *, void **, size_t, const host *);
int cudaGraphAddChildGraphNode(void **, void *, void **, size_t, void *), cudaGraphAddEmptyNode(void **, void *, void **, size_t);

static void nothing(void *p) { (void)p; }

int main(int argc, char **argv) {
  int ordered = argc > 2;
  const char *which = argv[1];
  void *p, *g, *x, *a, *b, *fork, *join, *n[3], *inner;
  cudaMalloc(&p, 1024);
  cudaStreamCreateWithFlags(&a, 1);
  cudaStreamCreateWithFlags(&b, 1);
  cudaEventCreate(&fork), cudaEventCreate(&join);
  cudaGraphCreate(&g, 0);
  fill f = {p, 0, 1, 1, 1024, 1};
  host h = {nothing, NULL};
  if (!strcmp(which, "branches")) {
    cudaGraphAddMemsetNode(&n[0], g, NULL, 0, &f);
    cudaGraphAddMemsetNode(&n[1], g, n, ordered, &f);
  } else if (!strcmp(which, "path")) { // over a node that does nothing
    cudaGraphAddMemsetNode(&n[0], g, NULL, 0, &f);
    cudaGraphAddEmptyNode(&n[1], g, n, ordered);
    cudaGraphAddMemsetNode(&n[2], g, &n[1], 1, &f);
  } else if (!strcmp(which, "host")) { // a host function of one branch orders nothing of the other
    cudaGraphAddMemsetNode(&n[0], g, NULL, 0, &f);
    cudaGraphAddHostNode(&n[1], g, n, 1, &h);
    cudaGraphAddMemsetNode(&n[2], g, &n[1], ordered, &f);
  } else if (!strcmp(which, "child")) {
    cudaGraphCreate(&inner, 0);
    cudaGraphAddMemsetNode(&n[0], inner, NULL, 0, &f);
    cudaGraphAddChildGraphNode(&n[0], g, NULL, 0, inner);
    cudaGraphAddMemsetNode(&n[1], g, n, ordered, &f);
  } else if (!strcmp(which, "capture")) {
    cudaStreamBeginCapture(a, 0);
    cudaEventRecord(fork, a);
    cudaStreamWaitEvent(b, fork, 0);
    cudaMemsetAsync(p, 1, 1024, b);
    cudaEventRecord(join, b);
    if (ordered) cudaStreamWaitEvent(a, join, 0);
    cudaMemsetAsync(p, 2, 1024, a);
    cudaStreamWaitEvent(a, join, 0);
    cudaStreamEndCapture(a, &g);
  } else if (!strcmp(which, "join")) { // of two branches, or of one alone
    for (int i = 0; i < 2; i++) f.at = (char *)p + 512 * i, f.width = 512, cudaGraphAddMemsetNode(&n[i], g, NULL, 0, &f);
    f.at = p, f.width = 1024;
    cudaGraphAddMemsetNode(&n[2], g, n, 1 + ordered, &f);
  } else if (!strcmp(which, "launches")) { // of one graph are ordered, of two in two streams are not
    cudaGraphAddMemsetNode(&n[0], g, NULL, 0, &f);
  } else if (!strcmp(which, "stream")) { // work behind the launch waits for all branches, that of another stream does not
    for (int i = 0; i < 2; i++) f.at = (char *)p + 512 * i, f.width = 512, cudaGraphAddMemsetNode(&n[i], g, NULL, 0, &f);
  }
  if (cudaGraphInstantiate(&x, g, 0)) return 1;
  cudaGraphLaunch(x, a);
  cudaGraphLaunch(x, a);
  if (!strcmp(which, "launches")) {
    void *y = x;
    if (!ordered) cudaGraphInstantiate(&y, g, 0);
    cudaGraphLaunch(y, b);
  }
  if (!strcmp(which, "stream")) cudaMemsetAsync((char *)p + 600, 1, 8, ordered ? a : b);
  return cudaDeviceSynchronize();
}
