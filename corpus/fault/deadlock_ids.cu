// Two warps, two named barriers of 64 threads: each waits for the other at a barrier the other never comes to.
#include <cstdio>

const int BLOCK = 64;

__device__ void barrier(int id, int threads) {
  asm volatile("bar.sync %0, %1;" ::"r"(id), "r"(threads) : "memory"); // want error:deadlock
}

__global__ void meet(int *out) {
  if (threadIdx.x < 32)
    barrier(1, BLOCK);
  else
    barrier(2, BLOCK);
  out[threadIdx.x] = threadIdx.x;
}

int main() {
  int *out;
  cudaMallocManaged(&out, BLOCK * sizeof(int));
  meet<<<1, BLOCK>>>(out);
  printf("%s\n", cudaGetErrorString(cudaDeviceSynchronize()));
}
