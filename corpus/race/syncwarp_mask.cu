// Each half of the warp synchronises with itself only, then reads what the other half wrote.
#include <cstdio>

const int N = 32, BLOCK = 32;

__global__ void swapHalves(const int *in, int *out) {
  __shared__ int slot[BLOCK];
  int lane = threadIdx.x;
  slot[lane] = in[lane]; // want warning:warp-synchronous
  __syncwarp(lane < 16 ? 0x0000ffff : 0xffff0000);
  out[lane] = slot[lane ^ 16]; // want warning:warp-synchronous
}

int main() {
  int *in, *out;
  cudaMallocManaged(&in, N * sizeof(int));
  cudaMallocManaged(&out, N * sizeof(int));
  for (int i = 0; i < N; i++) in[i] = i, out[i] = 0;
  swapHalves<<<N / BLOCK, BLOCK>>>(in, out);
  cudaDeviceSynchronize();
  printf("out[0] = %d\n", out[0]);
}
