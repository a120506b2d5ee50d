// __syncwarp between two ifs orders what the lanes do in the first before what others do in the second.
#include <cstdio>

const int N = 32, BLOCK = 32;

__global__ void rotate(const int *in, int *out) {
  __shared__ int slot[BLOCK / 2];
  int lane = threadIdx.x;
  if (lane < 16) slot[lane] = in[lane];
  __syncwarp();
  if (lane >= 16) out[lane] = slot[lane - 16];
}

int main() {
  int *in, *out;
  cudaMallocManaged(&in, N * sizeof(int));
  cudaMallocManaged(&out, N * sizeof(int));
  for (int i = 0; i < N; i++) in[i] = i, out[i] = 0;
  rotate<<<N / BLOCK, BLOCK>>>(in, out);
  cudaDeviceSynchronize();
  int wrong = 0;
  for (int i = 0; i < N; i++) wrong += out[i] != (i < 16 ? 0 : i - 16);
  printf("%d wrong\n", wrong);
  return wrong != 0;
}
