// Depositors hold the lock, but the last block reads the balance without it.
#include <cstdio>

const int BLOCKS = 8, BLOCK = 32;

__global__ void account(int *mutex, int *balance, int *report) {
  if (threadIdx.x != 0) return;
  if (blockIdx.x == gridDim.x - 1) {
    *report = *balance; // want error:missing-lock
    return;
  }
  while (atomicCAS(mutex, 0, 1) != 0) {}
  __threadfence();
  *balance += blockIdx.x; // want error:missing-lock
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
  printf("report %d\n", *report);
}
