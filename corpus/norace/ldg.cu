// A kernel loads through the read-only cache what an earlier kernel wrote, and plainly what it writes itself.
#include <cstdio>

const int BLOCK = 128;

__global__ void reverse(const int *in, int *tile, int *out) {
  int t = threadIdx.x;
  tile[t] = __ldg(&in[t]) + 1;
  __syncthreads();
  out[t] = tile[BLOCK - 1 - t] + __ldg(&in[BLOCK - 1 - t]);
}

int main() {
  int *in, *tile, *out;
  cudaMallocManaged(&in, BLOCK * sizeof(int));
  cudaMallocManaged(&tile, BLOCK * sizeof(int));
  cudaMallocManaged(&out, BLOCK * sizeof(int));
  for (int i = 0; i < BLOCK; i++) in[i] = 3, tile[i] = out[i] = 0;
  reverse<<<1, BLOCK>>>(in, tile, out);
  cudaDeviceSynchronize();
  int wrong = 0;
  for (int i = 0; i < BLOCK; i++) wrong += out[i] != 7;
  printf("%d wrong\n", wrong);
  return wrong != 0;
}
