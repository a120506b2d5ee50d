// Thread 0 has no left neighbour and does without. The arrays lie one behind the other in shared memory, and no index leads from one to the other.
#include <cstdio>

const int BLOCK = 64;

__global__ void difference(const int *in, int *out) {
  __shared__ int scale[BLOCK];
  __shared__ int tile[BLOCK];
  int t = threadIdx.x;
  scale[t] = 2;
  tile[t] = in[t];
  __syncthreads();
  int left = t > 0 ? tile[t - 1] : 0;
  out[t] = scale[t] * (tile[t] - left);
}

int main() {
  int *in, *out;
  cudaMalloc(&in, BLOCK * sizeof(int));
  cudaMalloc(&out, BLOCK * sizeof(int));
  cudaMemset(in, 0, BLOCK * sizeof(int));
  difference<<<1, BLOCK>>>(in, out);
  printf("%s\n", cudaGetErrorString(cudaDeviceSynchronize()));
}
