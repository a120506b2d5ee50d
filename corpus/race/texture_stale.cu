// A block fetches through a texture what it wrote before the barrier: texture fetches are not coherent with writes of the same kernel.
#include <cstdio>

const int BLOCK = 128;

__global__ void reverse(cudaTextureObject_t texture, int *tile, int *out) {
  int t = threadIdx.x;
  tile[t] = t * t; // want error:read-only-load
  __syncthreads();
  out[t] = tex1Dfetch<int>(texture, BLOCK - 1 - t); // want error:read-only-load
}

int main() {
  int *tile, *out;
  cudaMallocManaged(&tile, BLOCK * sizeof(int));
  cudaMallocManaged(&out, BLOCK * sizeof(int));
  for (int i = 0; i < BLOCK; i++) tile[i] = out[i] = 0;
  cudaResourceDesc what = {};
  what.resType = cudaResourceTypeLinear;
  what.res.linear.devPtr = tile;
  what.res.linear.desc = cudaCreateChannelDesc<int>();
  what.res.linear.sizeInBytes = BLOCK * sizeof(int);
  cudaTextureDesc how = {};
  cudaTextureObject_t texture = 0;
  cudaCreateTextureObject(&texture, &what, &how, nullptr);
  reverse<<<1, BLOCK>>>(texture, tile, out);
  cudaDeviceSynchronize();
  printf("last: %d\n", out[BLOCK - 1]);
  return out[BLOCK - 1] != 0;
}
