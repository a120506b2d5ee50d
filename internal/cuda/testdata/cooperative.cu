// A grid barrier in a cooperative launch.
// stdout: 64 0
#include <cooperative_groups.h>
#include <cstdio>
namespace cg = cooperative_groups;
__global__ void k(int *sum, int *out) {
  atomicAdd(sum, 1);
  cg::this_grid().sync();
  if (threadIdx.x == 0) out[blockIdx.x] = *sum;
}
int main() {
  int *sum, *out;
  cudaMallocManaged(&sum, 4);
  cudaMallocManaged(&out, 16);
  *sum = 0;
  void *args[] = {&sum, &out};
  int e = cudaLaunchCooperativeKernel((void *)k, dim3(2), dim3(32), args, 0, 0);
  e += cudaDeviceSynchronize();
  printf("%d %d\n", out[1], e);
}
