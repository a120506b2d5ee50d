// Atomic additions to a pair of halves, one of which another block writes as usual.
#include <cuda_fp16.h>
#include <cstdio>

__global__ void add(__half2 *pair, float *out) {
  if (blockIdx.x == 0)
    atomicAdd(pair, __floats2half2_rn(1, 2)); // want error:atomic-mixed-with-plain
  else
    ((__half *)pair)[1] = __float2half(4); // want error:atomic-mixed-with-plain
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
  return __low2float(*pair) != 1;
}
