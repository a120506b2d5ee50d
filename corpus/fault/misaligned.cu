// A float4 must lie at a multiple of 16 bytes; in + 1 does not.
#include <cstdio>

const int BLOCK = 32;

__global__ void sum4(const float *in, float *out) {
  const float4 *p = reinterpret_cast<const float4 *>(in + 1);
  float4 v = p[threadIdx.x]; // want error:misaligned
  out[threadIdx.x] = v.x + v.y + v.z + v.w;
}

int main() {
  float *in, *out;
  cudaMalloc(&in, (4 * BLOCK + 4) * sizeof(float));
  cudaMalloc(&out, BLOCK * sizeof(float));
  cudaMemset(in, 0, (4 * BLOCK + 4) * sizeof(float));
  sum4<<<1, BLOCK>>>(in, out);
  printf("%s\n", cudaGetErrorString(cudaDeviceSynchronize()));
}
