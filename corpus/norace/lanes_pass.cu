// One half of a warp passes values to the other, with __syncwarp after each of the two steps.
#include <cstdio>

const int N = 32, BLOCK = 32;

__global__ void pass(const int *in, int *out) {
  __shared__ int slot[BLOCK / 2];
  int lane = threadIdx.x;
  for (int i = 0; i < 4; i++) {
    if (lane < 16) slot[lane] = in[lane] + i;
    __syncwarp();
    if (lane >= 16) out[lane] += slot[lane - 16];
    __syncwarp();
  }
}

int main() {
  int *in, *out;
  cudaMallocManaged(&in, N * sizeof(int));
  cudaMallocManaged(&out, N * sizeof(int));
  for (int i = 0; i < N; i++) in[i] = i, out[i] = 0;
  pass<<<N / BLOCK, BLOCK>>>(in, out);
  cudaDeviceSynchronize();
  int wrong = 0;
  for (int i = 0; i < N; i++) wrong += out[i] != (i < 16 ? 0 : 4 * (i - 16) + 6);
  printf("%d wrong\n", wrong);
  return wrong != 0;
}
