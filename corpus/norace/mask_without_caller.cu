// All lanes vote together; each keeps the bits of the lanes below it.
#include <cstdio>

const int N = 32, BLOCK = 32;

__global__ void below(const int *in, int *out) {
  int lane = threadIdx.x;
  out[lane] = __popc(__ballot_sync(0xffffffff, in[lane] % 2) & ((1u << lane) - 1));
}

int main() {
  int *in, *out;
  cudaMallocManaged(&in, N * sizeof(int));
  cudaMallocManaged(&out, N * sizeof(int));
  for (int i = 0; i < N; i++) in[i] = i, out[i] = 0;
  below<<<1, BLOCK>>>(in, out);
  cudaDeviceSynchronize();
  printf("out[0] = %d\n", out[0]);
  return out[0] != 0;
}
