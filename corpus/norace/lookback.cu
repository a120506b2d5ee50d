// Blocks look back at the sums of the blocks before them: sum, fence, flag on one side; flag, fence, sum on the other.
#include <cstdio>

const int N = 256, BLOCK = 64;

__global__ void lookback(const int *in, int *out, int *ticket, int *sum, int *ready) {
  __shared__ int tile, before;
  int t = threadIdx.x;
  if (t == 0) tile = atomicAdd(ticket, 1);
  __syncthreads();
  int x = in[tile * BLOCK + t];
  if (t == 0) {
    int own = 0;
    for (int i = 0; i < BLOCK; i++) own += in[tile * BLOCK + i];
    sum[tile] = own;
    __threadfence();
    atomicExch(&ready[tile], 1);
    before = 0;
    for (int p = tile - 1; p >= 0; p--) {
      while (atomicAdd(&ready[p], 0) == 0) {}
      __threadfence();
      before += sum[p];
    }
  }
  __syncthreads();
  out[tile * BLOCK + t] = before + x;
}

int main() {
  int *in, *out, *state;
  cudaMallocManaged(&in, N * sizeof(int));
  cudaMallocManaged(&out, N * sizeof(int));
  cudaMallocManaged(&state, (1 + 2 * N / BLOCK) * sizeof(int));
  for (int i = 0; i < N; i++) in[i] = 1;
  for (int i = 0; i < 1 + 2 * N / BLOCK; i++) state[i] = 0;
  lookback<<<N / BLOCK, BLOCK>>>(in, out, state, state + 1, state + 1 + N / BLOCK);
  cudaDeviceSynchronize();
  int wrong = 0;
  for (int i = 0; i < N; i++) wrong += out[i] != i / BLOCK * BLOCK + 1;
  printf("%d wrong\n", wrong);
  return wrong != 0;
}
