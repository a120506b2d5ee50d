// Each lane asks the lanes below it only: its own bit is missing from the mask. What it gets is undefined.
#include <cstdio>

const int N = 32, BLOCK = 32;

__global__ void below(const int *in, int *out) {
  int lane = threadIdx.x;
  out[lane] = __popc(__ballot_sync((1u << lane) - 1, in[lane] % 2)); // want error:member-mask
}

int main() {
  int *in, *out;
  cudaMallocManaged(&in, N * sizeof(int));
  cudaMallocManaged(&out, N * sizeof(int));
  for (int i = 0; i < N; i++) in[i] = i, out[i] = 0;
  below<<<1, BLOCK>>>(in, out);
  cudaDeviceSynchronize();
  printf("out[0] = %d\n", out[0]);
}
