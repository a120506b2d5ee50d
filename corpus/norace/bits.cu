// Each thread sets its bit of a shared word with an atomic or.
#include <cstdio>

const int N = 128, BLOCK = 128;

__global__ void mark(const int *in, int *out) {
  __shared__ unsigned bits[BLOCK / 32];
  int t = threadIdx.x;
  if (t < BLOCK / 32) bits[t] = 0;
  __syncthreads();
  if (in[t] % 3 == 0) atomicOr(&bits[t / 32], 1u << t % 32);
  __syncthreads();
  out[t] = bits[t / 32] >> t % 32 & 1;
}

int main() {
  int *in, *out;
  cudaMallocManaged(&in, N * sizeof(int));
  cudaMallocManaged(&out, N * sizeof(int));
  for (int i = 0; i < N; i++) in[i] = i, out[i] = 0;
  mark<<<N / BLOCK, BLOCK>>>(in, out);
  cudaDeviceSynchronize();
  int wrong = 0;
  for (int i = 0; i < N; i++) wrong += out[i] != (i % 3 == 0);
  printf("%d wrong\n", wrong);
  return wrong != 0;
}
