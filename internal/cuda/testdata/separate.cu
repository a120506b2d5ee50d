// Separate compilation: two units, a device function and a variable of the other unit.
// flags: -rdc=true testdata/more/other.cu
// stdout: 42 7
#include <cstdio>
extern __device__ int twice(int);
extern __device__ int counter;
__global__ void k(int *p) { *p = twice(21); counter += 7; }
int main() {
  int *p, n;
  cudaMallocManaged(&p, 4);
  k<<<1, 1>>>(p);
  cudaDeviceSynchronize();
  cudaMemcpyFromSymbol(&n, counter, 4);
  printf("%d %d\n", *p, n);
}
