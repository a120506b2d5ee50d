// Rule 110 of cellular automata on a ring. In each step a cell gives its state to its two neighbours, at block scope, or at device
// scope where its block ends.
// plant 1: what goes to another block has a fence of block scope
// plant 2: what goes to another block is told of atomically for the block only
#include <cstdio>
#include <cstdlib>

const int BLOCKS = 3, BLOCK = 64, N = BLOCKS * BLOCK, STEPS = 4;

// give leaves a state for a neighbour, and tells of it by the number of the step; far: the neighbour is of another block.
template <int plant> __device__ void give(volatile int *given, int *told, int state, int step, bool far) {
  *given = state; // want error:insufficient-fence-scope@1 error:insufficient-atomic-scope@2
  if (!far) {
    __threadfence_block();
    atomicExch_block(told, step);
  } else if constexpr (plant == 1) {
    __threadfence_block();
    atomicExch(told, step);
  } else if constexpr (plant == 2) {
    __threadfence();
    atomicExch_block(told, step); // want error:insufficient-atomic-scope@2
  } else {
    __threadfence();
    atomicExch(told, step);
  }
}

__device__ int take(volatile int *given, int *told, int step, bool far) {
  if (far) {
    while (atomicAdd(told, 0) < step) {} // want error:insufficient-atomic-scope@2
    __threadfence();
  } else {
    while (atomicAdd_block(told, 0) < step) {}
    __threadfence_block();
  }
  return *given; // want error:insufficient-fence-scope@1 error:insufficient-atomic-scope@2
}

// given has two halves that the steps take in turn. In each half, and in told, what goes to the left is before what goes to the right.
template <int plant> __global__ void rule110(int *cells, volatile int *given, int *told) {
  int t = threadIdx.x, i = blockIdx.x * BLOCK + t, left = (i + N - 1) % N, right = (i + 1) % N, state = cells[i];
  for (int step = 0; step < STEPS; step++) {
    volatile int *half = &given[step % 2 * 2 * N];
    give<plant>(&half[i], &told[i], state, step + 1, t == 0);
    give<plant>(&half[N + i], &told[N + i], state, step + 1, t == BLOCK - 1);
    int pattern = take(&half[N + left], &told[N + left], step + 1, t == 0) * 4 + state * 2;
    pattern += take(&half[right], &told[right], step + 1, t == BLOCK - 1);
    state = 110 >> pattern & 1;
  }
  cells[i] = state;
}

int main(int argc, char **argv) {
  int *cells, *given, *told;
  cudaMallocManaged(&cells, N * sizeof(int));
  cudaMallocManaged(&given, 4 * N * sizeof(int));
  cudaMallocManaged(&told, 2 * N * sizeof(int));
  for (int i = 0; i < N; i++) cells[i] = i == N - 1, told[i] = told[N + i] = 0;
  switch (argc > 1 ? atoi(argv[1]) : 0) {
  case 0: rule110<0><<<BLOCKS, BLOCK>>>(cells, given, told); break;
  case 1: rule110<1><<<BLOCKS, BLOCK>>>(cells, given, told); break;
  case 2: rule110<2><<<BLOCKS, BLOCK>>>(cells, given, told); break;
  }
  cudaDeviceSynchronize();
  int alive = 0;
  for (int i = 0; i < N; i++) alive += cells[i];
  printf("%d alive\n", alive);
  return alive != 5;
}
