// Neighbouring members of a structure belong to different threads: other bytes, no conflict.
#include <cstdio>

const int N = 64, BLOCK = 64;

struct Pair { int low, high; };

__global__ void split(const int *in, int *out) {
  __shared__ Pair pairs[BLOCK / 2];
  int t = threadIdx.x;
  if (t < BLOCK / 2)
    pairs[t].low = in[t];
  else
    pairs[t - BLOCK / 2].high = in[t];
  __syncthreads();
  Pair p = pairs[t / 2];
  out[t] = p.low + p.high;
}

int main() {
  int *in, *out;
  cudaMallocManaged(&in, N * sizeof(int));
  cudaMallocManaged(&out, N * sizeof(int));
  for (int i = 0; i < N; i++) in[i] = i, out[i] = 0;
  split<<<N / BLOCK, BLOCK>>>(in, out);
  cudaDeviceSynchronize();
  int wrong = 0;
  for (int i = 0; i < N; i++) wrong += out[i] != (i / 2 + i / 2 + 32);
  printf("%d wrong\n", wrong);
  return wrong != 0;
}
