// Output of kernels appears when the program synchronises.
// stdout: before
// stdout: still before
// stdout: kernel 1
// stdout: kernel 2
// stdout: after
// stdout: copied
// stdout: kernel 3
// stdout: end
#include <cstdio>
__global__ void k(int n, int *p) { printf("kernel %d\n", n); *p = n; }
int main() {
  int *p, v;
  cudaMalloc(&p, 4);
  printf("before\n");
  k<<<1, 1>>>(1, p);
  k<<<1, 1>>>(2, p);
  printf("still before\n");
  cudaDeviceSynchronize();
  printf("after\n");
  printf("copied\n");
  k<<<1, 1>>>(3, p);
  cudaMemcpy(&v, p, 4, cudaMemcpyDeviceToHost);
  printf("end\n");
}
