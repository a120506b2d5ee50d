// Depositors and the block that reports the balance all hold the lock.
#include <cstdio>

const int BLOCKS = 8, BLOCK = 32;

__global__ void account(int *mutex, int *balance, int *report) {
  if (threadIdx.x != 0) return;
  while (atomicCAS(mutex, 0, 1) != 0) {}
  __threadfence();
  if (blockIdx.x == gridDim.x - 1)
    *report = *balance;
  else
    *balance += blockIdx.x;
  __threadfence();
  atomicExch(mutex, 0);
}

int main() {
  int *mutex, *balance, *report;
  cudaMallocManaged(&mutex, sizeof(int));
  cudaMallocManaged(&balance, sizeof(int));
  cudaMallocManaged(&report, sizeof(int));
  *mutex = *balance = 0;
  account<<<BLOCKS, BLOCK>>>(mutex, balance, report);
  cudaDeviceSynchronize();
  printf("balance %d\n", *balance);
  return *balance != 21;
}
