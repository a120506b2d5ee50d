// Two kernels on two streams change the same array; an event makes the second stream wait for the first.
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
  cudaStream_t a, b;
  cudaStreamCreate(&a);
  cudaStreamCreate(&b);
  cudaEvent_t filled;
  cudaEventCreate(&filled);
  fill<<<N / BLOCK, BLOCK, 0, a>>>(data, 1);
  cudaEventRecord(filled, a);
  cudaStreamWaitEvent(b, filled, 0);
  increment<<<N / BLOCK, BLOCK, 0, b>>>(data);
  cudaDeviceSynchronize();
  printf("data[0] = %d\n", data[0]);
  return data[0] != 2 || data[N - 1] != 2;
}
