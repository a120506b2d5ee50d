// The last thread reads one element past the block's shared memory.
#include <cstdio>

const int BLOCK = 64;

__global__ void difference(const int *in, int *out) {
  __shared__ int tile[BLOCK];
  int t = threadIdx.x;
  tile[t] = in[t];
  __syncthreads();
  out[t] = tile[t + 1] - tile[t]; // want error:out-of-bounds
}

int main() {
  int *in, *out;
  cudaMalloc(&in, BLOCK * sizeof(int));
  cudaMalloc(&out, BLOCK * sizeof(int));
  cudaMemset(in, 0, BLOCK * sizeof(int));
  difference<<<1, BLOCK>>>(in, out);
  printf("%s\n", cudaGetErrorString(cudaDeviceSynchronize()));
}
