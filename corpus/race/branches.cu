// The two sides of a branch run in no defined order, not even in a lockstep warp.
#include <cstdio>

const int N = 32, BLOCK = 32;

__global__ void shift(const int *in, int *out) {
  __shared__ int slot[BLOCK];
  int lane = threadIdx.x;
  if (lane < 16)
    slot[lane] = in[lane]; // want error:missing-barrier
  else
    out[lane] = slot[lane - 16]; // want error:missing-barrier
}

int main() {
  int *in, *out;
  cudaMallocManaged(&in, N * sizeof(int));
  cudaMallocManaged(&out, N * sizeof(int));
  for (int i = 0; i < N; i++) in[i] = i, out[i] = 0;
  shift<<<N / BLOCK, BLOCK>>>(in, out);
  cudaDeviceSynchronize();
  printf("out[0] = %d\n", out[0]);
}
