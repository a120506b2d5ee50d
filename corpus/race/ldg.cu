// A block loads through the read-only cache what it wrote before the barrier: that cache may still hold the old values.
#include <cstdio>

const int BLOCK = 128;

__global__ void reverse(int *tile, int *out) {
  int t = threadIdx.x;
  tile[t] = t * t; // want error:read-only-load
  __syncthreads();
  out[t] = __ldg(&tile[BLOCK - 1 - t]); // want error:read-only-load
}

int main() {
  int *tile, *out;
  cudaMallocManaged(&tile, BLOCK * sizeof(int));
  cudaMallocManaged(&out, BLOCK * sizeof(int));
  for (int i = 0; i < BLOCK; i++) tile[i] = out[i] = 0;
  reverse<<<1, BLOCK>>>(tile, out);
  cudaDeviceSynchronize();
  printf("last: %d\n", out[BLOCK - 1]);
  return out[BLOCK - 1] != 0;
}
