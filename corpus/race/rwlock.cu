// A reader-writer lock. A reader says that it has read without a fence, so that the writer may overwrite what it is still to read.
#include <cstdio>

const int BLOCKS = 5, WRITER = 1 << 16;

__global__ void table(int *lock, int *data, int *out) {
  if (blockIdx.x > 0) {
    while (atomicAdd(lock, 1) >= WRITER) atomicSub(lock, 1);
    __threadfence();
    out[blockIdx.x] = *data; // want error:missing-fence
    atomicSub(lock, 1);
    atomicAdd(&out[0], 1);
  } else {
    while (atomicAdd(&out[0], 0) < BLOCKS - 1) {} // after all readers
    while (atomicCAS(lock, 0, WRITER) != 0) {}
    __threadfence();
    *data = 7; // want error:missing-fence
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
}
