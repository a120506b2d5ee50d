// Batches of copies whose order is judged. The first argument is the scenario, the second, when there, makes it right.
#include <stdio.h>
#include <string.h>

typedef struct { int order, hints[4]; unsigned flags; } how;
int cudaMalloc(void **, size_t), cudaMallocHost(void **, size_t), cudaMemsetAsync(void *, int, size_t, void *), cudaDeviceSynchronize(void);
int cudaStreamCreateWithFlags(void **, unsigned), cudaMemcpyAsync(void *, const void *, size_t, int, void *), cudaStreamSynchronize(void *);
int cudaMemcpyBatchAsync(void **, void **, size_t *, size_t, how *, size_t *, size_t, void *);
enum { inOrder = 1, duringCall, anyTime };

int main(int argc, char **argv) {
  const int right = argc > 2;
  const char *which = argv[1];
  char *p, *pinned;
  void *s, *t;
  size_t sizes[] = {512, 512}, first = 0;
  how order = {inOrder};
  cudaMalloc((void **)&p, 4096), cudaMallocHost((void **)&pinned, 4096);
  cudaStreamCreateWithFlags(&s, 1), cudaStreamCreateWithFlags(&t, 1);
  void *to[] = {p, p + 512}, *from[] = {p + 1024, p + 2048}, *host[] = {pinned, pinned + 512};
  if (!strcmp(which, "overlap")) { // the copies of a batch are not ordered
    if (!right) to[1] = p + 256;
    cudaMemcpyBatchAsync(to, from, sizes, 2, &order, &first, 1, s);
  } else if (!strcmp(which, "chain")) { // nor does one read what another one writes
    if (!right) from[1] = p;
    cudaMemcpyBatchAsync(to, from, sizes, 2, &order, &first, 1, s);
  } else if (!strcmp(which, "before")) { // the stream's work comes before
    cudaMemsetAsync(p + 1024, 1, 512, right ? s : t);
    cudaMemcpyBatchAsync(to, from, sizes, 2, &order, &first, 1, s);
  } else if (!strcmp(which, "behind")) { // and after
    cudaMemcpyBatchAsync(to, from, sizes, 2, &order, &first, 1, s);
    cudaMemsetAsync(p + 600, 1, 8, right ? s : t);
  } else if (!strcmp(which, "during") || !strcmp(which, "any")) { // but not before reads that are out of stream order
    order.order = !strcmp(which, "any") ? anyTime : duringCall;
    cudaMemcpyAsync(pinned, p + 1024, 512, 2, s);
    if (right) cudaStreamSynchronize(s);
    cudaMemcpyBatchAsync(to, host, sizes, 2, &order, &first, 1, s);
  } else if (!strcmp(which, "reuse")) { // a source that was read during the call can be written after it
    order.order = right ? duringCall : anyTime;
    cudaMemcpyBatchAsync(to, host, sizes, 2, &order, &first, 1, s);
    cudaMemcpyAsync(pinned, p + 1024, 512, 2, t);
  } else if (!strcmp(which, "done")) { // who waits for the stream has waited for reads at any time
    order.order = anyTime;
    cudaMemcpyBatchAsync(to, host, sizes, 2, &order, &first, 1, s);
    if (right) cudaStreamSynchronize(s);
    cudaMemcpyAsync(pinned, p + 1024, 512, 2, t);
  }
  return cudaDeviceSynchronize();
}
