// Thread 0 takes the lock for its block, and gives it back while other threads of the block are still in the critical section.
#include <cstdio>

const int BLOCKS = 4, BLOCK = 64;

__device__ void lock(int *mutex) {
  while (atomicCAS(mutex, 0, 1) != 0) {}
  __threadfence();
}

__device__ void unlock(int *mutex) {
  __threadfence();
  atomicExch(mutex, 0);
}

__global__ void add(int *mutex, int *vector) {
  if (threadIdx.x == 0) lock(mutex);
  __syncthreads();
  vector[threadIdx.x] += blockIdx.x; // want error:missing-barrier
  if (threadIdx.x == 0) unlock(mutex);
}

int main() {
  int *mutex, *vector;
  cudaMallocManaged(&mutex, sizeof(int));
  cudaMallocManaged(&vector, BLOCK * sizeof(int));
  *mutex = 0;
  for (int i = 0; i < BLOCK; i++) vector[i] = 0;
  add<<<BLOCKS, BLOCK>>>(mutex, vector);
  cudaDeviceSynchronize();
  printf("vector[0] = %d\n", vector[0]);
}
