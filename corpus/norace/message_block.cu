// Two warps of one block: fences and flag of block scope are enough.
#include <cstdio>

__global__ void message(int *out) {
  __shared__ int data, flag;
  if (threadIdx.x == 0) flag = 0;
  __syncthreads();
  if (threadIdx.x == 0) {
    data = 42;
    __threadfence_block();
    atomicExch_block(&flag, 1);
  } else if (threadIdx.x == 32) {
    while (atomicAdd_block(&flag, 0) == 0) {}
    __threadfence_block();
    *out = data;
  }
}

int main() {
  int *out;
  cudaMallocManaged(&out, sizeof(int));
  message<<<1, 64>>>(out);
  cudaDeviceSynchronize();
  printf("received %d\n", *out);
  return *out != 42;
}
