// Each block has a lock of its own, so block scope is enough for its atomics and fences.
#include <cstdio>

const int BLOCKS = 4, BLOCK = 128;

__global__ void deposit(int *mutex, int *balance) {
  int *m = &mutex[blockIdx.x], *b = &balance[blockIdx.x];
  if (threadIdx.x % 32 == 0) {
    while (atomicCAS_block(m, 0, 1) != 0) {}
    __threadfence_block();
    *b += threadIdx.x;
    __threadfence_block();
    atomicExch_block(m, 0);
  }
}

int main() {
  int *mutex, *balance;
  cudaMallocManaged(&mutex, BLOCKS * sizeof(int));
  cudaMallocManaged(&balance, BLOCKS * sizeof(int));
  for (int i = 0; i < BLOCKS; i++) mutex[i] = balance[i] = 0;
  deposit<<<BLOCKS, BLOCK>>>(mutex, balance);
  cudaDeviceSynchronize();
  printf("balance %d\n", balance[0]);
  return balance[0] != 0 + 32 + 64 + 96;
}
