// The kernel's assertion fails for the one negative input.
#include <cassert>
#include <cstdio>

const int BLOCK = 64;

__global__ void roots(const float *in, float *out) {
  float x = in[threadIdx.x] - 1;
  assert(x >= 0); // want error:assertion
  out[threadIdx.x] = sqrtf(x);
}

int main() {
  float *in, *out;
  cudaMallocManaged(&in, BLOCK * sizeof(float));
  cudaMallocManaged(&out, BLOCK * sizeof(float));
  for (int i = 0; i < BLOCK; i++) in[i] = i;
  roots<<<1, BLOCK>>>(in, out);
  printf("%s\n", cudaGetErrorString(cudaDeviceSynchronize()));
}
