// The halves of a warp wait in different warp-level functions, each for its own lanes.
#include <cstdio>

const int N = 32, BLOCK = 32;

__global__ void spread(const int *in, int *out) {
  int lane = threadIdx.x, x = in[lane];
  if (lane < 16) x = __shfl_sync(0x0000ffff, x, 3);
  else __syncwarp(0xffff0000);
  out[lane] = x;
}

int main() {
  int *in, *out;
  cudaMallocManaged(&in, N * sizeof(int));
  cudaMallocManaged(&out, N * sizeof(int));
  for (int i = 0; i < N; i++) in[i] = i, out[i] = 0;
  spread<<<1, BLOCK>>>(in, out);
  cudaDeviceSynchronize();
  printf("out[0] = %d\n", out[0]);
  return out[0] != 3;
}
