// All threads that find the key write the same word with the same value, by an atomic operation.
#include <cstdio>

const int N = 128, BLOCK = 64;

__global__ void search(const int *in, int *out) {
  int i = blockIdx.x * BLOCK + threadIdx.x;
  if (in[i] % 10 == 7) atomicExch(out, 1);
}

int main() {
  int *in, *out;
  cudaMallocManaged(&in, N * sizeof(int));
  cudaMallocManaged(&out, N * sizeof(int));
  for (int i = 0; i < N; i++) in[i] = i, out[i] = 0;
  search<<<N / BLOCK, BLOCK>>>(in, out);
  cudaDeviceSynchronize();
  printf("out[0] = %d\n", out[0]);
  return out[0] != 1;
}
