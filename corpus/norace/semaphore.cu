// A semaphore admits one block at a time to a buffer, with a fence before a block lets the next one in and one after it is let in.
#include <cstdio>

const int BLOCKS = 5;

__device__ void wait(int *semaphore) {
  for (int n; (n = atomicAdd(semaphore, 0)) <= 0 || atomicCAS(semaphore, n, n - 1) != n;) {}
  __threadfence();
}

__device__ void post(int *semaphore) {
  __threadfence();
  atomicAdd(semaphore, 1);
}

__global__ void visit(int *semaphore, int *buffer) {
  wait(semaphore);
  buffer[threadIdx.x] += 1;
  post(semaphore);
}

int main() {
  int *semaphore, *buffer;
  cudaMallocManaged(&semaphore, sizeof(int));
  cudaMallocManaged(&buffer, sizeof(int));
  *semaphore = 1;
  *buffer = 0;
  visit<<<BLOCKS, 1>>>(semaphore, buffer);
  cudaDeviceSynchronize();
  printf("%d visits\n", *buffer);
  return *buffer != BLOCKS;
}
