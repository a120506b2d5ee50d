// A barrier for the whole grid made by hand: block barrier, fence, arrive, wait, fence, block barrier.
#include <cstdio>

const int BLOCKS = 4, BLOCK = 64, N = BLOCKS * BLOCK;

__device__ void gridBarrier(int *arrived) {
  __syncthreads();
  if (threadIdx.x == 0) {
    __threadfence();
    atomicAdd(arrived, 1);
    while (atomicAdd(arrived, 0) < gridDim.x) {}
    __threadfence();
  }
  __syncthreads();
}

__global__ void reverse(const int *in, int *middle, int *out, int *arrived) {
  int i = blockIdx.x * BLOCK + threadIdx.x;
  middle[i] = 2 * in[i];
  gridBarrier(arrived);
  out[i] = middle[N - 1 - i];
}

int main() {
  int *in, *middle, *out, *arrived;
  cudaMallocManaged(&in, N * sizeof(int));
  cudaMallocManaged(&middle, N * sizeof(int));
  cudaMallocManaged(&out, N * sizeof(int));
  cudaMallocManaged(&arrived, sizeof(int));
  for (int i = 0; i < N; i++) in[i] = i;
  *arrived = 0;
  void *args[] = {&in, &middle, &out, &arrived};
  cudaLaunchCooperativeKernel((void *)reverse, BLOCKS, BLOCK, args, 0, 0);
  cudaDeviceSynchronize();
  int wrong = 0;
  for (int i = 0; i < N; i++) wrong += out[i] != 2 * (N - 1 - i);
  printf("%d wrong\n", wrong);
  return wrong != 0;
}
