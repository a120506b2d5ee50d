// The last block to finish adds up what all have stored; of each block only the counting thread had a fence, and no barrier.
__global__ void k(int *x, int *count, int *out) {
  int i = blockIdx.x * 32 + threadIdx.x;
  x[i] = i; // want error:missing-barrier
  if (threadIdx.x == 0) {
    __threadfence();
    if (atomicAdd(count, 1) == 3) {
      __threadfence();
      int sum = 0;
      for (int j = 0; j < 128; j++) sum += x[j]; // want error:missing-barrier
      *out = sum;
    }
  }
}
