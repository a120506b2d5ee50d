// The host asks whether an event of the first stream has happened, ignores the answer, and launches on the second.
#include <cstdio>

const int N = 256, BLOCK = 64;

__global__ void produce(int *data) {
  int i = blockIdx.x * BLOCK + threadIdx.x;
  data[i] = i; // want error:inter-kernel
}

__global__ void consume(const int *data, int *out) {
  int i = blockIdx.x * BLOCK + threadIdx.x;
  out[i] = data[N - 1 - i]; // want error:inter-kernel
}

int main() {
  int *data, *out;
  cudaMallocManaged(&data, N * sizeof(int));
  cudaMallocManaged(&out, N * sizeof(int));
  cudaStream_t a, b;
  cudaStreamCreate(&a);
  cudaStreamCreate(&b);
  cudaEvent_t produced;
  cudaEventCreate(&produced);
  produce<<<N / BLOCK, BLOCK, 0, a>>>(data);
  cudaEventRecord(produced, a);
  cudaEventQuery(produced); // cudaErrorNotReady: nothing is ordered
  consume<<<N / BLOCK, BLOCK, 0, b>>>(data, out);
  cudaDeviceSynchronize();
  printf("out[0] = %d\n", out[0]);
}
