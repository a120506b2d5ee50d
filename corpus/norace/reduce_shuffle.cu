// Warps reduce by shuffles, leave their sums in shared memory, and the first warp adds them up after a barrier.
#include <cstdio>

const int N = 512, BLOCK = 128, WARPS = BLOCK / 32;

__device__ int warpSum(int x) {
  for (int half = 16; half > 0; half /= 2) x += __shfl_down_sync(0xffffffff, x, half);
  return x;
}

__global__ void reduce(const int *in, int *out) {
  __shared__ int sums[WARPS];
  int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  int sum = warpSum(in[blockIdx.x * BLOCK + threadIdx.x]);
  if (lane == 0) sums[warp] = sum;
  __syncthreads();
  if (warp == 0) {
    sum = warpSum(lane < WARPS ? sums[lane] : 0);
    if (lane == 0) atomicAdd(out, sum);
  }
}

int main() {
  int *in, *out;
  cudaMallocManaged(&in, N * sizeof(int));
  cudaMallocManaged(&out, sizeof(int));
  for (int i = 0; i < N; i++) in[i] = i;
  *out = 0;
  reduce<<<N / BLOCK, BLOCK>>>(in, out);
  cudaDeviceSynchronize();
  printf("sum %d\n", *out);
  return *out != N * (N - 1) / 2;
}
