// Persistent blocks: thread 0 takes the number of the next item and leaves it in shared memory. It takes another one while threads of
// the other warp still read the last.
#include <cstdio>

const int BLOCKS = 3, BLOCK = 64, TURNS = 4, ITEMS = BLOCKS * TURNS;

__global__ void work(int *next, int *out) {
  __shared__ int item;
  for (int turn = 0; turn < TURNS; turn++) {
    if (threadIdx.x == 0) item = atomicAdd(next, 1); // want error:missing-barrier
    __syncthreads();
    out[item % ITEMS * BLOCK + threadIdx.x] = item; // want error:missing-barrier
  }
}

int main() {
  int *next, *out;
  cudaMallocManaged(&next, sizeof(int));
  cudaMallocManaged(&out, ITEMS * BLOCK * sizeof(int));
  *next = 0;
  work<<<BLOCKS, BLOCK>>>(next, out);
  cudaDeviceSynchronize();
  printf("last %d\n", out[ITEMS * BLOCK - 1]);
}
