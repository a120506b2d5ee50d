// Two kernels on one stream change the same array one after the other.
#include <cstdio>

const int N = 256, BLOCK = 64;

__global__ void fill(int *data, int value) {
  data[blockIdx.x * BLOCK + threadIdx.x] = value;
}

__global__ void increment(int *data) {
  data[blockIdx.x * BLOCK + threadIdx.x] += 1;
}

int main() {
  int *data;
  cudaMallocManaged(&data, N * sizeof(int));
  cudaStream_t a;
  cudaStreamCreate(&a);
  fill<<<N / BLOCK, BLOCK, 0, a>>>(data, 1);
  increment<<<N / BLOCK, BLOCK, 0, a>>>(data);
  cudaDeviceSynchronize();
  printf("data[0] = %d\n", data[0]);
  return data[0] != 2 || data[N - 1] != 2;
}
