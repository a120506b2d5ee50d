/* A CUDA runtime that only says what it was called for. It is linked in place of the real one by the tests. */
#include <stdio.h>
#include <stdlib.h>

const char fencepost_marker[] = "fencepost-standin-test";

struct wrapper { unsigned magic, version; const void *data; void **list; };

void **__cudaRegisterFatBinary(void *p) {
  struct wrapper *w = p;
  int n = 0;
  while (w->version == 2 && w->list[n]) n++;
  printf("%.18s: version %u, units %d\n", fencepost_marker, w->version, n);
  return p;
}
void __cudaRegisterFatBinaryEnd(void **h) {}
void __cudaUnregisterFatBinary(void **h) {}
void __cudaRegisterFunction(void **h, const char *f, char *d, const char *name, int n, void *a, void *b, void *c, void *e, int *s) {
  printf("kernel %s\n", name);
}
char __cudaInitModule(void **h) { return 1; }
int __cudaPushCallConfiguration(unsigned long long g, unsigned gz, unsigned long long b, unsigned bz, size_t s, void *st) { return 0; }
int __cudaPopCallConfiguration(void *g, void *b, size_t *s, void *st) { return 0; }
int __cudaGetKernel(void **k, const void *f) { *k = (void *)f; return 0; }
int __cudaLaunchKernel(void *k) { return 0; }
int cudaLaunchKernel(const void *f, unsigned long long g, unsigned gz, unsigned long long b, unsigned bz, void **a, size_t s, void *st) { return 0; }
int cudaMalloc(void **p, size_t n) { *p = malloc(n); return 0; }
int cudaDeviceSynchronize(void) { return 0; }
int cudaGetDeviceCount(int *n) { *n = 1; return 0; }
int cudaGetDeviceProperties(void *p, int d) { return 0; }
int cudaGetDeviceProperties_v2(void *p, int d) { return 0; }
