// Each block reduces its part, and one thread of it adds the result to the total by a plain addition.
#include <cstdio>

const int N = 512, BLOCK = 128;

__global__ void sum(const int *in, int *total) {
  __shared__ int own;
  if (threadIdx.x == 0) own = 0;
  __syncthreads();
  atomicAdd(&own, in[blockIdx.x * BLOCK + threadIdx.x]);
  __syncthreads();
  if (threadIdx.x == 0) *total += own; // want error:unordered
}

int main() {
  int *in, *total;
  cudaMallocManaged(&in, N * sizeof(int));
  cudaMallocManaged(&total, sizeof(int));
  for (int i = 0; i < N; i++) in[i] = i;
  *total = 0;
  sum<<<N / BLOCK, BLOCK>>>(in, total);
  cudaDeviceSynchronize();
  printf("total %d\n", *total);
}
