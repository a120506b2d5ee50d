// Money moves between two accounts under both locks, taken in order of their numbers so that nobody waits in a ring.
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
  lock(&mutex[min(from, to)]);
  lock(&mutex[max(from, to)]);
  balance[from] -= 5;
  balance[to] += 5;
  unlock(&mutex[from]);
  unlock(&mutex[to]);
}

int main() {
  int *mutex, *balance;
  cudaMallocManaged(&mutex, ACCOUNTS * sizeof(int));
  cudaMallocManaged(&balance, ACCOUNTS * sizeof(int));
  for (int i = 0; i < ACCOUNTS; i++) mutex[i] = 0, balance[i] = 100;
  transfer<<<BLOCKS, 1>>>(mutex, balance);
  cudaDeviceSynchronize();
  printf("balance %d\n", balance[0]);
  return balance[0] != 100;
}
