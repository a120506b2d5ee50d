// Both sides of a branch have a barrier of their own, and the lanes of one warp take different sides.
#include <cstdio>

const int BLOCK = 64;

__global__ void spread(const int *in, int *out) {
  __shared__ int tile[BLOCK];
  int t = threadIdx.x;
  if (t % 2 == 0) {
    tile[t] = in[t];
    __syncthreads(); // want error:barrier-divergence
  } else {
    tile[t] = -in[t];
    __syncthreads(); // want error:barrier-divergence
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
