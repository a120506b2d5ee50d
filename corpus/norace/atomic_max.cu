// A maximum of floats by compare-and-swap. The old value comes from a swap that changes nothing.
#include <cstdio>

const int BLOCKS = 4, BLOCK = 64;

__device__ void atomicMaxFloat(float *max, float x) {
  int *bits = (int *)max;
  int old = atomicCAS(bits, 0, 0);
  while (__int_as_float(old) < x) {
    int seen = atomicCAS(bits, old, __float_as_int(x));
    if (seen == old) return;
    old = seen;
  }
}

__global__ void maximum(const float *in, float *max) {
  atomicMaxFloat(max, in[blockIdx.x * BLOCK + threadIdx.x]);
}

int main() {
  float *in, *max;
  cudaMallocManaged(&in, BLOCKS * BLOCK * sizeof(float));
  cudaMallocManaged(&max, sizeof(float));
  for (int i = 0; i < BLOCKS * BLOCK; i++) in[i] = i;
  *max = -1;
  maximum<<<BLOCKS, BLOCK>>>(in, max);
  cudaDeviceSynchronize();
  printf("max %g\n", *max);
  return *max != BLOCKS * BLOCK - 1;
}
