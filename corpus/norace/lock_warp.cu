// All lanes of a warp take one lock: the holder leaves the loop's body before it gives the lock back to its neighbours.
#include <cstdio>

const int BLOCKS = 2, BLOCK = 32;

__global__ void deposit(int *mutex, int *balance) {
  bool done = false;
  while (!done) {
    if (atomicCAS(mutex, 0, 1) == 0) {
      __threadfence();
      *balance += threadIdx.x;
      __threadfence();
      atomicExch(mutex, 0);
      done = true;
    }
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
  return *balance != BLOCKS * BLOCK * (BLOCK - 1) / 2;
}
