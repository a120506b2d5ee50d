// The default stream of each thread.
// flags: -default-stream per-thread
// stdout: 5 5
#include <cstdio>
__global__ void k(int *p) { *p += 5; }
int main() {
  int *p, v = 0;
  cudaMalloc(&p, 4);
  cudaMemset(p, 0, 4);
  k<<<1, 1>>>(p);
  cudaMemcpyAsync(&v, p, 4, cudaMemcpyDeviceToHost);
  cudaStreamSynchronize(0);
  int w = 0;
  cudaMemcpy(&w, p, 4, cudaMemcpyDeviceToHost);
  printf("%d %d\n", v, w);
}
