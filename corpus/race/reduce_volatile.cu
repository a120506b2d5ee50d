// The reduction tail of the days before Volta: one warp, volatile, no __syncwarp. Only lockstep warps order it.
#include <cstdio>

const int BLOCK = 64;

__global__ void reduce(const int *in, int *out) {
  __shared__ int sum[BLOCK];
  int t = threadIdx.x;
  sum[t] = in[t];
  __syncthreads();
  if (t < 32) {
    volatile int *v = sum;
    v[t] += v[t + 32]; // want warning:warp-synchronous
    v[t] += v[t + 16]; // want warning:warp-synchronous
    v[t] += v[t + 8];  // want warning:warp-synchronous
    v[t] += v[t + 4];  // want warning:warp-synchronous
    v[t] += v[t + 2];  // want warning:warp-synchronous
    v[t] += v[t + 1];  // want warning:warp-synchronous
  }
  if (t == 0) *out = sum[0];
}

int main() {
  int *in, *out;
  cudaMallocManaged(&in, BLOCK * sizeof(int));
  cudaMallocManaged(&out, sizeof(int));
  for (int i = 0; i < BLOCK; i++) in[i] = 1;
  reduce<<<1, BLOCK>>>(in, out);
  cudaDeviceSynchronize();
  printf("sum %d\n", *out);
}
