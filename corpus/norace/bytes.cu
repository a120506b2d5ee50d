// Each thread owns one byte. Bytes of one word are different memory locations.
#include <cstdio>

const int N = 128, BLOCK = 128;

__global__ void mark(const int *in, int *out) {
  __shared__ unsigned char flags[BLOCK];
  int t = threadIdx.x;
  flags[t] = 0;
  flags[t] += in[t] % 3 == 0;
  __syncthreads();
  out[t] = flags[BLOCK - 1 - t];
}

int main() {
  int *in, *out;
  cudaMallocManaged(&in, N * sizeof(int));
  cudaMallocManaged(&out, N * sizeof(int));
  for (int i = 0; i < N; i++) in[i] = i, out[i] = 0;
  mark<<<N / BLOCK, BLOCK>>>(in, out);
  cudaDeviceSynchronize();
  int wrong = 0;
  for (int i = 0; i < N; i++) wrong += out[i] != ((BLOCK - 1 - i) % 3 == 0);
  printf("%d wrong\n", wrong);
  return wrong != 0;
}
