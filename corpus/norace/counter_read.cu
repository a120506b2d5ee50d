// A second kernel of the same stream reads the total: it starts when the first has ended.
#include <cstdio>

const int BLOCKS = 4, BLOCK = 64;

__global__ void count(const int *in, int *total) { atomicAdd(total, in[blockIdx.x * BLOCK + threadIdx.x]); }

__global__ void publish(const int *total, int *report) { *report = *total; }

int main() {
  int *in, *total, *report;
  cudaMallocManaged(&in, BLOCKS * BLOCK * sizeof(int));
  cudaMallocManaged(&total, sizeof(int));
  cudaMallocManaged(&report, sizeof(int));
  for (int i = 0; i < BLOCKS * BLOCK; i++) in[i] = 1;
  *total = 0;
  count<<<BLOCKS, BLOCK>>>(in, total);
  publish<<<1, 1>>>(total, report);
  cudaDeviceSynchronize();
  printf("report %d\n", *report);
  return *report != BLOCKS * BLOCK;
}
