// The consumers' barrier counts 96 threads, but only 64 of the block ever come to it.
#include <cstdio>

const int BLOCK = 128;

__device__ int answer;

__global__ void produce(int *out) {
  if (threadIdx.x == 0) answer = 42;
  if (threadIdx.x < 64) {
    asm volatile("bar.sync 1, 96;" ::: "memory"); // want error:deadlock
    out[threadIdx.x] = answer;
  }
}

int main() {
  int *out;
  cudaMallocManaged(&out, 64 * sizeof(int));
  produce<<<1, BLOCK>>>(out);
  printf("%s\n", cudaGetErrorString(cudaDeviceSynchronize()));
}
