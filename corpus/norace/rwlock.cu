// A reader-writer lock. Readers and writers have a fence after they take it and before they give it back.
#include <cstdio>

const int BLOCKS = 5, WRITER = 1 << 16;

__global__ void table(int *lock, int *data, int *out) {
  if (blockIdx.x > 0) {
    while (atomicAdd(lock, 1) >= WRITER) atomicSub(lock, 1);
    __threadfence();
    out[blockIdx.x] = *data;
    __threadfence();
    atomicSub(lock, 1);
    atomicAdd(&out[0], 1);
  } else {
    while (atomicAdd(&out[0], 0) < BLOCKS - 1) {} // after all readers
    while (atomicCAS(lock, 0, WRITER) != 0) {}
    __threadfence();
    *data = 7;
    __threadfence();
    atomicSub(lock, WRITER);
  }
}

int main() {
  int *lock, *data, *out;
  cudaMallocManaged(&lock, sizeof(int));
  cudaMallocManaged(&data, sizeof(int));
  cudaMallocManaged(&out, BLOCKS * sizeof(int));
  *lock = 0;
  *data = 42;
  out[0] = 0;
  table<<<BLOCKS, 1>>>(lock, data, out);
  cudaDeviceSynchronize();
  printf("read %d\n", out[1]);
  return out[1] != 42 || *data != 7;
}
