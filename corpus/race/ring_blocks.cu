// One block fills a ring of two slots that another one empties. The consumer gives a slot back without a fence, so that the producer may
// overwrite what is still to be read.
#include <cstdio>

const int SLOTS = 2, ITEMS = 6, BLOCK = 32;

__global__ void ring(int *slots, int *full, int *empty, int *out) {
  int t = threadIdx.x;
  for (int i = 0; i < ITEMS; i++) {
    int *slot = &slots[i % SLOTS * BLOCK + t];
    if (blockIdx.x == 0) {
      while (atomicAdd(&empty[t], 0) + SLOTS <= i) {}
      __threadfence();
      *slot = i; // want error:missing-fence
      __threadfence();
      atomicAdd(&full[t], 1);
    } else {
      while (atomicAdd(&full[t], 0) <= i) {}
      __threadfence();
      out[i * BLOCK + t] = *slot; // want error:missing-fence
      atomicAdd(&empty[t], 1);
    }
  }
}

int main() {
  int *memory;
  size_t size = (SLOTS + 2 + ITEMS) * BLOCK * sizeof(int);
  cudaMallocManaged(&memory, size);
  cudaMemset(memory, 0, size);
  int *slots = memory, *full = slots + SLOTS * BLOCK, *empty = full + BLOCK, *out = empty + BLOCK;
  ring<<<2, BLOCK>>>(slots, full, empty, out);
  cudaDeviceSynchronize();
  printf("last %d\n", out[ITEMS * BLOCK - 1]);
}
