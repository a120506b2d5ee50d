// Neighbouring lanes exchange values through shared memory and rely on the warp running in lockstep.
#include <cstdio>

const int N = 32, BLOCK = 32;

__global__ void exchange(const int *in, int *out) {
  __shared__ int slot[BLOCK];
  int lane = threadIdx.x;
  slot[lane] = in[lane];     // want warning:warp-synchronous
  out[lane] = slot[lane ^ 1]; // want warning:warp-synchronous
}

int main() {
  int *in, *out;
  cudaMallocManaged(&in, N * sizeof(int));
  cudaMallocManaged(&out, N * sizeof(int));
  for (int i = 0; i < N; i++) in[i] = i, out[i] = 0;
  exchange<<<N / BLOCK, BLOCK>>>(in, out);
  cudaDeviceSynchronize();
  printf("out[0] = %d\n", out[0]);
}
