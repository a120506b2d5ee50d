// A vote chooses the leader, __syncwarp orders its write before the other lanes' reads.
#include <cstdio>

const int N = 32, BLOCK = 32;

__global__ void leader(const int *in, int *out) {
  __shared__ int slot;
  int lane = threadIdx.x;
  unsigned big = __ballot_sync(0xffffffff, in[lane] > 20);
  if (lane == __ffs(big) - 1) slot = in[lane];
  __syncwarp();
  out[lane] = slot;
}

int main() {
  int *in, *out;
  cudaMallocManaged(&in, N * sizeof(int));
  cudaMallocManaged(&out, N * sizeof(int));
  for (int i = 0; i < N; i++) in[i] = i, out[i] = 0;
  leader<<<N / BLOCK, BLOCK>>>(in, out);
  cudaDeviceSynchronize();
  int wrong = 0;
  for (int i = 0; i < N; i++) wrong += out[i] != 21;
  printf("%d wrong\n", wrong);
  return wrong != 0;
}
