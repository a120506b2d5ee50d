// stdout: 716
#include <cstdio>
__global__ void k(char *p) { *(int *)(p + 1) = 1; }
int main() {
  char *p;
  cudaMalloc(&p, 16);
  k<<<1, 1>>>(p);
  printf("%d\n", (int)cudaDeviceSynchronize());
}
