// The first thread has no left neighbour and reads before the array.
#include <cstdio>

const int BLOCK = 64;

__global__ void difference(const int *in, int *out) {
  int i = threadIdx.x;
  out[i] = in[i] - in[i - 1]; // want error:out-of-bounds
}

int main() {
  int *in, *out;
  cudaMalloc(&in, BLOCK * sizeof(int));
  cudaMalloc(&out, BLOCK * sizeof(int));
  cudaMemset(in, 0, BLOCK * sizeof(int));
  difference<<<1, BLOCK>>>(in, out);
  printf("%s\n", cudaGetErrorString(cudaDeviceSynchronize()));
}
