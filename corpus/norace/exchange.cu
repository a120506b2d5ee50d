// Neighbouring lanes exchange values through shared memory, with __syncwarp between writing and reading.
#include <cstdio>

const int N = 32, BLOCK = 32;

__global__ void exchange(const int *in, int *out) {
  __shared__ int slot[BLOCK];
  int lane = threadIdx.x;
  slot[lane] = in[lane];
  __syncwarp();
  out[lane] = slot[lane ^ 1];
}

int main() {
  int *in, *out;
  cudaMallocManaged(&in, N * sizeof(int));
  cudaMallocManaged(&out, N * sizeof(int));
  for (int i = 0; i < N; i++) in[i] = i, out[i] = 0;
  exchange<<<N / BLOCK, BLOCK>>>(in, out);
  cudaDeviceSynchronize();
  int wrong = 0;
  for (int i = 0; i < N; i++) wrong += out[i] != (i ^ 1);
  printf("%d wrong\n", wrong);
  return wrong != 0;
}
