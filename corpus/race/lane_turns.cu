// The lanes of a warp add to one sum in turn, each in another iteration: lockstep alone orders the turns.
#include <cstdio>

const int N = 32, BLOCK = 32;

__global__ void add(const int *in, int *out) {
  int lane = threadIdx.x;
  for (int turn = 0; turn < BLOCK; turn++)
    if (lane == turn) *out += in[lane]; // want warning:warp-synchronous
}

int main() {
  int *in, *out;
  cudaMallocManaged(&in, N * sizeof(int));
  cudaMallocManaged(&out, N * sizeof(int));
  for (int i = 0; i < N; i++) in[i] = i, out[i] = 0;
  add<<<N / BLOCK, BLOCK>>>(in, out);
  cudaDeviceSynchronize();
  printf("out[0] = %d\n", out[0]);
}
