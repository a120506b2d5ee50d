// A spin lock between blocks whose fences reach no further than the own block.
#include <cstdio>

const int BLOCKS = 8, BLOCK = 32;

__device__ void lock(int *mutex) {
  while (atomicCAS(mutex, 0, 1) != 0) {}
  __threadfence_block();
}

__device__ void unlock(int *mutex) {
  __threadfence_block();
  atomicExch(mutex, 0);
}

__global__ void deposit(int *mutex, int *balance) {
  if (threadIdx.x == 0) {
    lock(mutex);
    *balance += blockIdx.x; // want error:insufficient-lock-scope
    unlock(mutex);
  }
}

int main() {
  int *mutex, *balance;
  cudaMallocManaged(&mutex, sizeof(int));
  cudaMallocManaged(&balance, sizeof(int));
  *mutex = *balance = 0;
  deposit<<<BLOCKS, BLOCK>>>(mutex, balance);
  cudaDeviceSynchronize();
  printf("balance %d\n", *balance);
}
