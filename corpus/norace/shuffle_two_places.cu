// The sides of a branch choose the values, all lanes of the warp exchange them by one shuffle behind it.
#include <cstdio>

const int N = 32, BLOCK = 32;

__global__ void neighbours(const int *in, int *out) {
  int lane = threadIdx.x, x = in[lane];
  if (lane >= 16) x = -x;
  x = __shfl_xor_sync(0xffffffff, x, 16);
  out[lane] = x;
}

int main() {
  int *in, *out;
  cudaMallocManaged(&in, N * sizeof(int));
  cudaMallocManaged(&out, N * sizeof(int));
  for (int i = 0; i < N; i++) in[i] = i, out[i] = 0;
  neighbours<<<1, BLOCK>>>(in, out);
  cudaDeviceSynchronize();
  printf("out[0] = %d\n", out[0]);
  return out[0] != -16;
}
