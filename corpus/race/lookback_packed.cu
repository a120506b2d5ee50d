// Blocks look back at the sums of the blocks before them, each in one word with the bit that says that it is there. Others read
// that word atomically, but it is stored by a plain assignment.
#include <cstdio>

const int N = 256, BLOCK = 64, READY = 1 << 30;

__global__ void lookback(const int *in, int *out, int *ticket, int *state) {
  __shared__ int tile, before;
  int t = threadIdx.x;
  if (t == 0) {
    tile = atomicAdd(ticket, 1);
    int own = 0;
    for (int i = 0; i < BLOCK; i++) own += in[tile * BLOCK + i];
    state[tile] = READY | own; // want error:atomic-mixed-with-plain
    before = 0;
    for (int p = tile - 1, s; p >= 0; p--) {
      while (((s = atomicAdd(&state[p], 0)) & READY) == 0) {} // want error:atomic-mixed-with-plain
      before += s & ~READY;
    }
  }
  __syncthreads();
  out[tile * BLOCK + t] = before + in[tile * BLOCK + t];
}

int main() {
  int *in, *out, *state;
  cudaMallocManaged(&in, N * sizeof(int));
  cudaMallocManaged(&out, N * sizeof(int));
  cudaMallocManaged(&state, (1 + N / BLOCK) * sizeof(int));
  for (int i = 0; i < N; i++) in[i] = 1;
  for (int i = 0; i < 1 + N / BLOCK; i++) state[i] = 0;
  lookback<<<N / BLOCK, BLOCK>>>(in, out, state, state + 1);
  cudaDeviceSynchronize();
  printf("out[N - 1] = %d\n", out[N - 1]);
}
