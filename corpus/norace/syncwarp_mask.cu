// Each half of the warp synchronises with itself and exchanges values within itself.
#include <cstdio>

const int N = 32, BLOCK = 32;

__global__ void reverseHalves(const int *in, int *out) {
  __shared__ int slot[BLOCK];
  int lane = threadIdx.x;
  slot[lane] = in[lane];
  __syncwarp(lane < 16 ? 0x0000ffff : 0xffff0000);
  out[lane] = slot[lane ^ 15];
}

int main() {
  int *in, *out;
  cudaMallocManaged(&in, N * sizeof(int));
  cudaMallocManaged(&out, N * sizeof(int));
  for (int i = 0; i < N; i++) in[i] = i, out[i] = 0;
  reverseHalves<<<N / BLOCK, BLOCK>>>(in, out);
  cudaDeviceSynchronize();
  int wrong = 0;
  for (int i = 0; i < N; i++) wrong += out[i] != (i ^ 15);
  printf("%d wrong\n", wrong);
  return wrong != 0;
}
