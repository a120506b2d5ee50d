// One kernel writes and the next one fetches through a texture: a launch sees what the launches before it wrote.
#include <cstdio>

const int BLOCK = 128;

__global__ void fill(int *tile) {
  int t = threadIdx.x;
  tile[t] = t * t;
}

__global__ void reverse(cudaTextureObject_t texture, int *out) {
  int t = threadIdx.x;
  out[t] = tex1Dfetch<int>(texture, BLOCK - 1 - t);
}

int main() {
  int *tile, *out;
  cudaMallocManaged(&tile, BLOCK * sizeof(int));
  cudaMallocManaged(&out, BLOCK * sizeof(int));
  cudaResourceDesc what = {};
  what.resType = cudaResourceTypeLinear;
  what.res.linear.devPtr = tile;
  what.res.linear.desc = cudaCreateChannelDesc<int>();
  what.res.linear.sizeInBytes = BLOCK * sizeof(int);
  cudaTextureDesc how = {};
  cudaTextureObject_t texture = 0;
  cudaCreateTextureObject(&texture, &what, &how, nullptr);
  fill<<<1, BLOCK>>>(tile);
  reverse<<<1, BLOCK>>>(texture, out);
  cudaDeviceSynchronize();
  printf("first: %d\n", out[0]);
  return out[0] != (BLOCK - 1) * (BLOCK - 1);
}
