// A lock whose holder returns without giving it back when it finds its element taken: the next block waits for ever.
#include <cstdio>

const int BLOCKS = 4;

__global__ void claim(int *lock, int *taken, int *wanted) {
  int i = wanted[blockIdx.x];
  while (atomicCAS(lock, 0, 1) != 0) {} // want error:deadlock
  __threadfence();
  if (taken[i]) return;
  taken[i] = 1;
  __threadfence();
  atomicExch(lock, 0);
}

int main() {
  int *lock, *taken, *wanted;
  cudaMallocManaged(&lock, sizeof(int));
  cudaMallocManaged(&taken, BLOCKS * sizeof(int));
  cudaMallocManaged(&wanted, BLOCKS * sizeof(int));
  claim<<<BLOCKS, 1>>>(lock, taken, wanted);
  printf("%s\n", cudaGetErrorString(cudaDeviceSynchronize()));
}
