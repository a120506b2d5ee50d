// Each thread sets its byte by changing the whole word: read, modify, write, while the neighbours do the same.
#include <cstdio>

const int N = 128, BLOCK = 128;

__global__ void mark(const int *in, int *out) {
  __shared__ unsigned words[32];
  int t = threadIdx.x, byte = t / 32, word = t % 32;
  if (t < 32) words[t] = 0;
  __syncthreads();
  words[word] |= (in[t] & 0xffu) << 8 * byte; // want error:missing-barrier
  __syncthreads();
  out[t] = words[word] >> 8 * byte & 0xff;
}

int main() {
  int *in, *out;
  cudaMallocManaged(&in, N * sizeof(int));
  cudaMallocManaged(&out, N * sizeof(int));
  for (int i = 0; i < N; i++) in[i] = i, out[i] = 0;
  mark<<<N / BLOCK, BLOCK>>>(in, out);
  cudaDeviceSynchronize();
  printf("out[0] = %d\n", out[0]);
}
