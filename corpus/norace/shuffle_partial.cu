// Half a warp adds up its values; the width keeps every lane within the half.
#include <cstdio>

const int N = 32, BLOCK = 32;

__global__ void sum(const int *in, int *out) {
  int lane = threadIdx.x, x = in[lane];
  if (lane >= 16) return;
  for (int half = 8; half > 0; half /= 2) x += __shfl_down_sync(0x0000ffff, x, half, 16);
  if (lane == 0) *out = x;
}

int main() {
  int *in, *out;
  cudaMallocManaged(&in, N * sizeof(int));
  cudaMallocManaged(&out, N * sizeof(int));
  for (int i = 0; i < N; i++) in[i] = i, out[i] = 0;
  sum<<<1, BLOCK>>>(in, out);
  cudaDeviceSynchronize();
  printf("out[0] = %d\n", out[0]);
  return out[0] != 120;
}
