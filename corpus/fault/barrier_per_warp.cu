// Both sides of a branch have a barrier of their own; whole warps take one side. Hardware copes; the guide forbids it.
#include <cstdio>

const int BLOCK = 64;

__global__ void spread(const int *in, int *out) {
  __shared__ int tile[BLOCK];
  int t = threadIdx.x;
  if (t < 32) {
    tile[t] = in[t];
    __syncthreads(); // want warning:barrier-divergence
  } else {
    tile[t] = -in[t];
    __syncthreads(); // want warning:barrier-divergence
  }
  out[t] = tile[BLOCK - 1 - t];
}

int main() {
  int *in, *out;
  cudaMallocManaged(&in, BLOCK * sizeof(int));
  cudaMallocManaged(&out, BLOCK * sizeof(int));
  for (int i = 0; i < BLOCK; i++) in[i] = i;
  spread<<<1, BLOCK>>>(in, out);
  printf("%s\n", cudaGetErrorString(cudaDeviceSynchronize()));
}
