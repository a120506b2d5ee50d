// Host memory of every kind that kernels can reach.
// stdout: 6 11 16 ok
#include <cstdio>
#include <cstdlib>
__global__ void k(int *a, int *b, int *c) { a[1] += 5; b[1] += 10; c[1] += 15; }
int main() {
  int *a = (int *)malloc(8000), *b, *c, *da;
  for (int i = 0; i < 2000; i++) a[i] = 1;
  cudaHostRegister(a, 8000, cudaHostRegisterMapped);
  cudaHostGetDevicePointer(&da, a, 0);
  cudaHostAlloc(&b, 8, cudaHostAllocMapped);
  cudaMallocManaged(&c, 8);
  b[1] = c[1] = 1;
  k<<<1, 1>>>(da, b, c);
  cudaDeviceSynchronize();
  cudaHostUnregister(a);
  printf("%d %d %d %s\n", a[1], b[1], c[1], a[1999] == 1 ? "ok" : "lost");
}
