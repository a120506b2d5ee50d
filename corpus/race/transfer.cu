// Money moves between two accounts, each with its lock, but only the lock of the first is taken.
#include <cstdio>

const int ACCOUNTS = 4, BLOCKS = 8;

__device__ void lock(int *mutex) {
  while (atomicCAS(mutex, 0, 1) != 0) {}
  __threadfence();
}

__device__ void unlock(int *mutex) {
  __threadfence();
  atomicExch(mutex, 0);
}

__global__ void transfer(int *mutex, int *balance) {
  int from = blockIdx.x % ACCOUNTS, to = (from + 1) % ACCOUNTS;
  lock(&mutex[from]);
  balance[from] -= 5; // want error:missing-lock
  balance[to] += 5; // want error:missing-lock
  unlock(&mutex[from]);
}

int main() {
  int *mutex, *balance;
  cudaMallocManaged(&mutex, ACCOUNTS * sizeof(int));
  cudaMallocManaged(&balance, ACCOUNTS * sizeof(int));
  for (int i = 0; i < ACCOUNTS; i++) mutex[i] = 0, balance[i] = 100;
  transfer<<<BLOCKS, 1>>>(mutex, balance);
  cudaDeviceSynchronize();
  printf("balance %d\n", balance[0]);
}
