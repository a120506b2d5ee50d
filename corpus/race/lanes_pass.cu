// One half of a warp passes values to the other on two arms of a branch, which run in no defined order.
#include <cstdio>

const int N = 32, BLOCK = 32;

__global__ void pass(const int *in, int *out) {
  __shared__ int slot[BLOCK / 2];
  int lane = threadIdx.x;
  for (int i = 0; i < 4; i++) {
    if (lane < 16)
      slot[lane] = in[lane] + i; // want error:missing-barrier
    else
      out[lane] += slot[lane - 16]; // want error:missing-barrier
  }
}

int main() {
  int *in, *out;
  cudaMallocManaged(&in, N * sizeof(int));
  cudaMallocManaged(&out, N * sizeof(int));
  for (int i = 0; i < N; i++) in[i] = i, out[i] = 0;
  pass<<<N / BLOCK, BLOCK>>>(in, out);
  cudaDeviceSynchronize();
  printf("out[0] = %d\n", out[0]);
}
