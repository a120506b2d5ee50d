// The first block computes a value for all others, under a lock. Whether it is there is asked without the lock.
#include <cstdio>

const int BLOCKS = 5;

__global__ void lookup(int *mutex, int *value, int *out) {
  int v = *value; // want error:missing-lock
  if (v == 0) {
    while (atomicCAS(mutex, 0, 1) != 0) {}
    __threadfence();
    v = *value;
    if (v == 0) *value = v = 7; // want error:missing-lock
    __threadfence();
    atomicExch(mutex, 0);
  }
  out[blockIdx.x] = v;
}

int main() {
  int *mutex, *value, *out;
  cudaMallocManaged(&mutex, sizeof(int));
  cudaMallocManaged(&value, sizeof(int));
  cudaMallocManaged(&out, BLOCKS * sizeof(int));
  *mutex = *value = 0;
  lookup<<<BLOCKS, 1>>>(mutex, value, out);
  cudaDeviceSynchronize();
  printf("found %d\n", out[BLOCKS - 1]);
}
