// The smallest index wins, by an atomic minimum.
#include <cstdio>

const int N = 128, BLOCK = 64;

__global__ void search(const int *in, int *out) {
  int i = blockIdx.x * BLOCK + threadIdx.x;
  if (in[i] % 50 == 7) atomicMin(out, i - N);
}

int main() {
  int *in, *out;
  cudaMallocManaged(&in, N * sizeof(int));
  cudaMallocManaged(&out, N * sizeof(int));
  for (int i = 0; i < N; i++) in[i] = i, out[i] = 0;
  search<<<N / BLOCK, BLOCK>>>(in, out);
  cudaDeviceSynchronize();
  printf("first at %d\n", out[0] + N);
  return out[0] + N != 7;
}
