// A program that holds machine code only cannot be checked, and says so for each kernel launched.
// flags: -gencode arch=compute_80,code=sm_80
// stdout: 209 209
// launches: _Z1kPi
// errors: holds no PTX (only SASS for sm_80)
#include <cstdio>
__device__ int v;
__global__ void k(int *p) { *p = 5; }
int main() {
  int *p, h;
  cudaMalloc(&p, 4);
  k<<<1, 1>>>(p);
  printf("%d ", (int)cudaGetLastError());
  printf("%d\n", (int)cudaMemcpyFromSymbol(&h, v, 4));
}
