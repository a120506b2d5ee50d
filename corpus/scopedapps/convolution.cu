// One-dimensional convolution: each thread adds what its element gives to the outputs around it, atomically for the device where
// another block adds, too, and for the block elsewhere.
// plant 1: what lies behind the beginning of a block is taken for its own, too
#include <cstdio>
#include <cstdlib>

const int BLOCKS = 4, BLOCK = 64, N = BLOCKS * BLOCK, REACH = 4;

// The filter has 2 * REACH + 1 elements.
template <int plant> __global__ void convolution(const int *in, const int *filter, int *out) {
  int i = blockIdx.x * BLOCK + threadIdx.x;
  for (int f = -REACH; f <= REACH; f++) {
    int to = i + f;
    if (to < 0 || to >= N) continue;
    int x = in[i] * filter[f + REACH];
    bool own = to % BLOCK < BLOCK - REACH && (plant == 1 || to % BLOCK >= REACH);
    if (own) atomicAdd_block(&out[to], x); // want error:insufficient-atomic-scope@1
    else atomicAdd(&out[to], x);
  }
}

int main(int argc, char **argv) {
  int *in, *filter, *out;
  cudaMallocManaged(&in, N * sizeof(int));
  cudaMallocManaged(&filter, (2 * REACH + 1) * sizeof(int));
  cudaMallocManaged(&out, N * sizeof(int));
  for (int i = 0; i < N; i++) in[i] = i, out[i] = 0;
  for (int f = 0; f <= 2 * REACH; f++) filter[f] = f;
  switch (argc > 1 ? atoi(argv[1]) : 0) {
  case 0: convolution<0><<<BLOCKS, BLOCK>>>(in, filter, out); break;
  case 1: convolution<1><<<BLOCKS, BLOCK>>>(in, filter, out); break;
  }
  cudaDeviceSynchronize();
  int wrong = 0;
  for (int to = 0; to < N; to++) {
    int x = 0;
    for (int f = -REACH; f <= REACH; f++) x += to - f < 0 || to - f >= N ? 0 : in[to - f] * filter[f + REACH];
    wrong += out[to] != x;
  }
  printf("%d wrong\n", wrong);
  return wrong != 0;
}
