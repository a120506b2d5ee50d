// Every thread adds atomically, one then reads the total with a plain load while other blocks may still be adding.
#include <cstdio>

const int BLOCKS = 4, BLOCK = 64;

__global__ void count(const int *in, int *total, int *report) {
  atomicAdd(total, in[blockIdx.x * BLOCK + threadIdx.x]); // want error:atomic-mixed-with-plain
  if (blockIdx.x == 0 && threadIdx.x == 0) *report = *total; // want error:atomic-mixed-with-plain
}

int main() {
  int *in, *total, *report;
  cudaMallocManaged(&in, BLOCKS * BLOCK * sizeof(int));
  cudaMallocManaged(&total, sizeof(int));
  cudaMallocManaged(&report, sizeof(int));
  for (int i = 0; i < BLOCKS * BLOCK; i++) in[i] = 1;
  *total = 0;
  count<<<BLOCKS, BLOCK>>>(in, total, report);
  cudaDeviceSynchronize();
  printf("report %d\n", *report);
}
