// A vote makes lanes agree on a value; it does not order their memory accesses.
#include <cstdio>

const int N = 32, BLOCK = 32;

__global__ void leader(const int *in, int *out) {
  __shared__ int slot;
  int lane = threadIdx.x;
  unsigned big = __ballot_sync(0xffffffff, in[lane] > 20);
  if (lane == __ffs(big) - 1) slot = in[lane]; // want warning:warp-synchronous
  if (__any_sync(0xffffffff, in[lane] > 20)) out[lane] = slot; // want warning:warp-synchronous
}

int main() {
  int *in, *out;
  cudaMallocManaged(&in, N * sizeof(int));
  cudaMallocManaged(&out, N * sizeof(int));
  for (int i = 0; i < N; i++) in[i] = i, out[i] = 0;
  leader<<<N / BLOCK, BLOCK>>>(in, out);
  cudaDeviceSynchronize();
  printf("out[0] = %d\n", out[0]);
}
