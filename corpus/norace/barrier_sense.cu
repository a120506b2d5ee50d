// A barrier for the whole grid that is used again: the last thread to arrive resets
// the counter by a plain store, and begins the next generation.
#include <cstdio>

const int BLOCKS = 4, BLOCK = 32, N = BLOCKS * BLOCK, TURNS = 4;

__device__ void gridBarrier(int *arrived, int *generation) {
  __syncthreads();
  if (threadIdx.x == 0) {
    int mine = atomicAdd(generation, 0);
    __threadfence();
    if (atomicAdd(arrived, 1) == gridDim.x - 1) {
      *arrived = 0;
      __threadfence();
      atomicAdd(generation, 1);
    } else {
      while (atomicAdd(generation, 0) == mine) {}
    }
    __threadfence();
  }
  __syncthreads();
}

__global__ void rotate(int *data, int *arrived, int *generation) {
  int i = blockIdx.x * BLOCK + threadIdx.x;
  for (int turn = 0; turn < TURNS; turn++) {
    int next = data[(i + BLOCK + 1) % N];
    gridBarrier(arrived, generation);
    data[i] = next;
    gridBarrier(arrived, generation);
  }
}

int main() {
  int *data, *arrived, *generation;
  cudaMallocManaged(&data, N * sizeof(int));
  cudaMallocManaged(&arrived, sizeof(int));
  cudaMallocManaged(&generation, sizeof(int));
  for (int i = 0; i < N; i++) data[i] = i;
  *arrived = *generation = 0;
  void *args[] = {&data, &arrived, &generation};
  cudaLaunchCooperativeKernel((void *)rotate, BLOCKS, BLOCK, args, 0, 0);
  cudaDeviceSynchronize();
  int wrong = 0;
  for (int i = 0; i < N; i++) wrong += data[i] != (i + TURNS * (BLOCK + 1)) % N;
  printf("%d wrong\n", wrong);
  return wrong != 0;
}
