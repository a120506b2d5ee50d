// Sum of an array: each block halves its part step by step, flags telling the threads of a step that theirs is done; the block
// that comes last adds up the blocks' sums.
// plant 1: the fence before a block tells that its sum is there has block scope
// plant 2: the blocks count themselves atomically for the block only
#include <cstdio>
#include <cstdlib>

const int BLOCKS = 4, BLOCK = 128, N = 2 * BLOCKS * BLOCK;

template <int plant>
__global__ void reduction(const int *in, volatile int *partial, int *done, volatile int *sums, int *count, int *total) {
  int t = threadIdx.x;
  volatile int *mine = &partial[blockIdx.x * BLOCK];
  int *flag = &done[blockIdx.x * BLOCK];
  mine[t] = in[2 * blockIdx.x * BLOCK + t] + in[(2 * blockIdx.x + 1) * BLOCK + t];
  for (int step = BLOCK / 2; step >= 32; step /= 2) {
    if (t >= 2 * step) continue;
    if (t >= step) {
      __threadfence_block();
      atomicExch_block(&flag[t], 1);
    } else {
      while (atomicAdd_block(&flag[t + step], 0) == 0) {}
      __threadfence_block();
      mine[t] += mine[t + step];
    }
  }
  for (int step = 16; step > 0; step /= 2) {
    __syncwarp();
    if (t < step) mine[t] += mine[t + step];
  }
  if (t == 0) {
    sums[blockIdx.x] = mine[0]; // want error:insufficient-fence-scope@1 error:insufficient-atomic-scope@2
    if constexpr (plant == 1) __threadfence_block();
    else __threadfence();
    int before;
    if constexpr (plant == 2) before = atomicAdd_block(count, 1); // want error:insufficient-atomic-scope@2
    else before = atomicAdd(count, 1);
    if (before == BLOCKS - 1) {
      __threadfence();
      int sum = 0;
      for (int i = 0; i < BLOCKS; i++) sum += sums[i]; // want error:insufficient-fence-scope@1 error:insufficient-atomic-scope@2
      *total = sum;
    }
  }
}

int main(int argc, char **argv) {
  int *in, *m;
  cudaMallocManaged(&in, N * sizeof(int));
  cudaMallocManaged(&m, (N + BLOCKS + 2) * sizeof(int));
  for (int i = 0; i < N; i++) in[i] = i;
  for (int i = 0; i < N + BLOCKS + 2; i++) m[i] = 0;
  int *partial = m, *done = partial + N / 2, *sums = done + N / 2, *count = sums + BLOCKS, *total = count + 1;
  switch (argc > 1 ? atoi(argv[1]) : 0) {
  case 0: reduction<0><<<BLOCKS, BLOCK>>>(in, partial, done, sums, count, total); break;
  case 1: reduction<1><<<BLOCKS, BLOCK>>>(in, partial, done, sums, count, total); break;
  case 2: reduction<2><<<BLOCKS, BLOCK>>>(in, partial, done, sums, count, total); break;
  }
  cudaDeviceSynchronize();
  printf("total %d\n", *total);
  return *total != N * (N - 1) / 2;
}
