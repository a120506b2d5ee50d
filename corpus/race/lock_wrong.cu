// There is one lock for even and one for odd blocks, but a single balance that both guard.
#include <cstdio>

const int BLOCKS = 8, BLOCK = 32;

__global__ void deposit(int *mutex, int *balance) {
  if (threadIdx.x != 0) return;
  int *m = &mutex[blockIdx.x % 2];
  while (atomicCAS(m, 0, 1) != 0) {}
  __threadfence();
  *balance += blockIdx.x; // want error:missing-lock
  __threadfence();
  atomicExch(m, 0);
}

int main() {
  int *mutex, *balance;
  cudaMallocManaged(&mutex, 2 * sizeof(int));
  cudaMallocManaged(&balance, sizeof(int));
  mutex[0] = mutex[1] = *balance = 0;
  deposit<<<BLOCKS, BLOCK>>>(mutex, balance);
  cudaDeviceSynchronize();
  printf("balance %d\n", *balance);
}
