// A work queue. Each slot has a flag of its own, set behind a fence once the item is there.
#include <cstdio>

const int PRODUCERS = 4;

__global__ void queue(int *tail, int *items, int *ready, int *out) {
  if (blockIdx.x < PRODUCERS) {
    int slot = atomicAdd(tail, 1);
    items[slot] = 10 + blockIdx.x;
    __threadfence();
    atomicExch(&ready[slot], 1);
  } else {
    int sum = 0;
    for (int i = 0; i < PRODUCERS; i++) {
      while (atomicAdd(&ready[i], 0) == 0) {}
      __threadfence();
      sum += items[i];
    }
    *out = sum;
  }
}

int main() {
  int *tail, *items, *ready, *out;
  cudaMallocManaged(&tail, sizeof(int));
  cudaMallocManaged(&items, PRODUCERS * sizeof(int));
  cudaMallocManaged(&ready, PRODUCERS * sizeof(int));
  cudaMallocManaged(&out, sizeof(int));
  *tail = 0;
  for (int i = 0; i < PRODUCERS; i++) ready[i] = 0;
  queue<<<PRODUCERS + 1, 1>>>(tail, items, ready, out);
  cudaDeviceSynchronize();
  printf("sum %d\n", *out);
  return *out != 10 + 11 + 12 + 13;
}
