// The halves of a warp wait in different warp-level functions, each for all lanes: neither goes on.
#include <cstdio>

const int N = 32, BLOCK = 32;

__global__ void spread(const int *in, int *out) {
  int lane = threadIdx.x, x = in[lane];
  if (lane < 16) x = __shfl_sync(0xffffffff, x, 3); // want error:warp-divergence
  else __syncwarp(0xffffffff); // want error:warp-divergence
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
}
