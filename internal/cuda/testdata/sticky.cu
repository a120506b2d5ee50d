// A fault makes every later call fail.
// stdout: 0 700 700 700 700 cudaErrorIllegalAddress
// launches: _Z4wildPi _Z4wildPi
// errors: the device is lost: cudaErrorIllegalAddress
#include <cstdio>
__global__ void wild(int *p) { p[1 << 20] = 1; }
int main() {
  int *p, *q;
  cudaMalloc(&p, 16);
  wild<<<1, 1>>>(p);
  printf("%d ", (int)cudaGetLastError());
  printf("%d ", (int)cudaDeviceSynchronize());
  printf("%d ", (int)cudaGetLastError());
  printf("%d ", (int)cudaMalloc(&q, 16));
  wild<<<1, 1>>>(p);
  printf("%d %s\n", (int)cudaPeekAtLastError(), cudaGetErrorName(cudaGetLastError()));
}
