// Atomic additions to both halves of a pair at once and to one half: each half is a location of its own.
#include <cuda_fp16.h>
#include <cstdio>

__global__ void add(__half2 *pair, float *out) {
  if (blockIdx.x == 0)
    atomicAdd(pair, __floats2half2_rn(1, 2));
  else
    atomicAdd((__half *)pair + 1, __float2half(4));
  out[blockIdx.x] = blockIdx.x;
}

int main() {
  __half2 *pair;
  float *out;
  cudaMallocManaged(&pair, sizeof(__half2));
  cudaMallocManaged(&out, 2 * sizeof(float));
  *pair = __floats2half2_rn(0, 0);
  add<<<2, 1>>>(pair, out);
  cudaDeviceSynchronize();
  printf("%g %g\n", __low2float(*pair), __high2float(*pair));
  return __low2float(*pair) != 1 || __high2float(*pair) != 6;
}
