// A work queue. The tail moves before the item is stored, so whoever sees the tail may not find the item.
#include <cstdio>

const int PRODUCERS = 4;

__global__ void queue(int *tail, int *items, int *out) {
  if (blockIdx.x < PRODUCERS) {
    int slot = atomicAdd(tail, 1);
    items[slot] = 10 + blockIdx.x; // want error:unordered
  } else {
    while (atomicAdd(tail, 0) < PRODUCERS) {}
    __threadfence();
    int sum = 0;
    for (int i = 0; i < PRODUCERS; i++) sum += items[i]; // want error:unordered
    *out = sum;
  }
}

int main() {
  int *tail, *items, *out;
  cudaMallocManaged(&tail, sizeof(int));
  cudaMallocManaged(&items, PRODUCERS * sizeof(int));
  cudaMallocManaged(&out, sizeof(int));
  *tail = 0;
  queue<<<PRODUCERS + 1, 1>>>(tail, items, out);
  cudaDeviceSynchronize();
  printf("sum %d\n", *out);
}
