// Two ifs, one after the other: lockstep hardware reconverges between them, but nothing promises that.
#include <cstdio>

const int N = 32, BLOCK = 32;

__global__ void rotate(const int *in, int *out) {
  __shared__ int slot[BLOCK / 2];
  int lane = threadIdx.x;
  if (lane < 16) slot[lane] = in[lane]; // want warning:warp-synchronous
  if (lane >= 16) out[lane] = slot[lane - 16]; // want warning:warp-synchronous
}

int main() {
  int *in, *out;
  cudaMallocManaged(&in, N * sizeof(int));
  cudaMallocManaged(&out, N * sizeof(int));
  for (int i = 0; i < N; i++) in[i] = i, out[i] = 0;
  rotate<<<N / BLOCK, BLOCK>>>(in, out);
  cudaDeviceSynchronize();
  printf("out[0] = %d\n", out[0]);
}
