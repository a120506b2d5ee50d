// Each thread sets one bit of a byte that it shares with seven others.
#include <cstdio>

const int N = 128, BLOCK = 128;

__global__ void mark(const int *in, int *out) {
  __shared__ unsigned char bits[BLOCK / 8];
  int t = threadIdx.x;
  if (t < BLOCK / 8) bits[t] = 0;
  __syncthreads();
  if (in[t] % 3 == 0) bits[t / 8] |= 1 << t % 8; // want error:unordered
  __syncthreads();
  out[t] = bits[t / 8] >> t % 8 & 1;
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
