// Thread 0 reads one element before its array and gets the last element of the array that lies before it in shared memory.
#include <cstdio>

const int BLOCK = 64;

__global__ void difference(const int *in, int *out) {
  __shared__ int scale[BLOCK];
  __shared__ int tile[BLOCK];
  int t = threadIdx.x;
  scale[t] = 2;
  tile[t] = in[t];
  __syncthreads();
  int left = tile[t - 1]; // want error:out-of-variable
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
