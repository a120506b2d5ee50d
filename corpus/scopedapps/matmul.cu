// Matrix product whose inner dimension is divided among warps: a block adds up its warps' parts under a lock of its own, and
// then its sum to the product under a lock of the device.
// plant 1: the device's lock is taken and given back atomically for the block only
// plant 2: the device's lock has fences of block scope
// plant 3: the device's lock is given back without a fence
// plant 4: the block's lock is given back without a fence
#include <cstdio>
#include <cstdlib>

const int ROWS = 4, COLUMNS = 4, INNER = 64, BLOCKS = 4, BLOCK = 64, WARPS = BLOCKS * BLOCK / 32, PART = INNER / WARPS;

template <int plant> __device__ void lock(int *mutex) {
  if constexpr (plant == 1) {
    while (atomicCAS_block(mutex, 0, 1) != 0) {} // want error:insufficient-atomic-scope@1
  } else {
    while (atomicCAS(mutex, 0, 1) != 0) {}
  }
  if constexpr (plant == 2) __threadfence_block();
  else __threadfence();
}

template <int plant> __device__ void unlock(int *mutex) {
  if constexpr (plant == 2) __threadfence_block();
  else if constexpr (plant != 3) __threadfence();
  if constexpr (plant == 1) atomicExch_block(mutex, 0); // want error:insufficient-atomic-scope@1
  else atomicExch(mutex, 0);
}

__device__ void lock_block(int *mutex) {
  while (atomicCAS_block(mutex, 0, 1) != 0) {}
  __threadfence_block();
}

template <int plant> __device__ void unlock_block(int *mutex) {
  if constexpr (plant != 4) __threadfence_block();
  atomicExch_block(mutex, 0);
}

// The product is of row-major a (ROWS x INNER) and b (INNER x COLUMNS); sums and block_mutexes are the blocks'.
template <int plant>
__global__ void matmul(const int *a, const int *b, volatile int *product, int *mutex, volatile int *sums, int *block_mutexes) {
  int warp = threadIdx.x / 32, lane = threadIdx.x % 32, first = (blockIdx.x * BLOCK / 32 + warp) * PART;
  volatile int *sum = &sums[blockIdx.x * ROWS * COLUMNS];
  int part = 0;
  for (int k = first; k < first + PART; k++) part += a[lane / COLUMNS % ROWS * INNER + k] * b[k * COLUMNS + lane % COLUMNS];
  if (lane == 0) lock_block(&block_mutexes[blockIdx.x]);
  for (int i = 0; i < ROWS * COLUMNS; i++) {
    int x = __shfl_sync(~0u, part, i);
    if (lane == 0) sum[i] += x; // want error:missing-fence@4
  }
  if (lane == 0) unlock_block<plant>(&block_mutexes[blockIdx.x]);
  __syncthreads();
  if (threadIdx.x == 0) {
    lock<plant>(mutex);
    for (int i = 0; i < ROWS * COLUMNS; i++) product[i] += sum[i]; // want error:insufficient-lock-scope@1,2 error:missing-fence@3
    unlock<plant>(mutex);
  }
}

int main(int argc, char **argv) {
  int *m;
  cudaMallocManaged(&m, 1024 * sizeof(int));
  int *a = m, *b = a + ROWS * INNER, *product = b + INNER * COLUMNS, *mutex = product + ROWS * COLUMNS;
  int *sums = mutex + 1, *block_mutexes = sums + BLOCKS * ROWS * COLUMNS;
  for (int i = 0; i < 1024; i++) m[i] = i < ROWS * INNER + INNER * COLUMNS ? i % (ROWS * INNER) : 0;
  switch (argc > 1 ? atoi(argv[1]) : 0) {
  case 0: matmul<0><<<BLOCKS, BLOCK>>>(a, b, product, mutex, sums, block_mutexes); break;
  case 1: matmul<1><<<BLOCKS, BLOCK>>>(a, b, product, mutex, sums, block_mutexes); break;
  case 2: matmul<2><<<BLOCKS, BLOCK>>>(a, b, product, mutex, sums, block_mutexes); break;
  case 3: matmul<3><<<BLOCKS, BLOCK>>>(a, b, product, mutex, sums, block_mutexes); break;
  case 4: matmul<4><<<BLOCKS, BLOCK>>>(a, b, product, mutex, sums, block_mutexes); break;
  }
  cudaDeviceSynchronize();
  int wrong = 0;
  for (int i = 0; i < ROWS * COLUMNS; i++) {
    int x = 0;
    for (int k = 0; k < INNER; k++) x += a[i / COLUMNS * INNER + k] * b[k * COLUMNS + i % COLUMNS];
    wrong += product[i] != x;
  }
  printf("%d wrong\n", wrong);
  return wrong != 0;
}
