// Two kernels on two streams change the same array with nothing between them.
#include <cstdio>

const int N = 256, BLOCK = 64;

__global__ void fill(int *data, int value) {
  data[blockIdx.x * BLOCK + threadIdx.x] = value; // want error:inter-kernel
}

__global__ void increment(int *data) {
  data[blockIdx.x * BLOCK + threadIdx.x] += 1; // want error:inter-kernel
}

int main() {
  int *data;
  cudaMallocManaged(&data, N * sizeof(int));
  cudaStream_t a, b;
  cudaStreamCreate(&a);
  cudaStreamCreate(&b);
  fill<<<N / BLOCK, BLOCK, 0, a>>>(data, 1);
  increment<<<N / BLOCK, BLOCK, 0, b>>>(data);
  cudaDeviceSynchronize();
  printf("data[0] = %d\n", data[0]);
}
