// A program linked with the shared runtime library.
// flags: -cudart shared
// stdout: 42
// launches: _Z1kPi
#include <cstdio>
__global__ void k(int *p) { *p = 42; }
int main() {
  int *p;
  cudaMallocManaged(&p, 4);
  k<<<1, 1>>>(p);
  cudaDeviceSynchronize();
  printf("%d\n", *p);
}
