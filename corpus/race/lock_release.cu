// A spin lock with a fence after taking it, but none before giving it back.
#include <cstdio>

const int BLOCKS = 8, BLOCK = 32;

__device__ void lock(int *mutex) {
  while (atomicCAS(mutex, 0, 1) != 0) {}
  __threadfence();
}

__device__ void unlock(int *mutex) {
  atomicExch(mutex, 0);
}

__global__ void deposit(int *mutex, int *balance) {
  if (threadIdx.x == 0) {
    lock(mutex);
    *balance += blockIdx.x; // want error:missing-fence
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
