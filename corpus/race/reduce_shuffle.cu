// Warps reduce by shuffles and leave their sums in shared memory. The thread that adds them up does not wait for them.
#include <cstdio>

const int BLOCK = 128, WARPS = BLOCK / 32;

__device__ int warpSum(int x) {
  for (int half = 16; half > 0; half /= 2) x += __shfl_down_sync(0xffffffff, x, half);
  return x;
}

__global__ void reduce(const int *in, int *out) {
  __shared__ int sums[WARPS];
  int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  int sum = warpSum(in[threadIdx.x]);
  if (lane == 0) sums[warp] = sum; // want error:missing-barrier
  if (threadIdx.x == 0) {
    for (int w = 1; w < WARPS; w++) sum += sums[w]; // want error:missing-barrier
    *out = sum;
  }
}

int main() {
  int *in, *out;
  cudaMallocManaged(&in, BLOCK * sizeof(int));
  cudaMallocManaged(&out, sizeof(int));
  for (int i = 0; i < BLOCK; i++) in[i] = 1;
  reduce<<<1, BLOCK>>>(in, out);
  cudaDeviceSynchronize();
  printf("sum %d\n", *out);
}
