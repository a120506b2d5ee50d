// One thread locks for its block, whose warps take turns at the word by barriers under the lock.
__global__ void k(int *x, int *lock) {
  int t = threadIdx.x;
  if (t == 0) {
    while (atomicCAS(lock, 0, 1) != 0) {}
    __threadfence();
  }
  for (int warp = 0; warp < 2; warp++) {
    __syncthreads();
    if (t / 32 == warp && t % 32 == 0) *x += 32;
  }
  __syncthreads();
  if (t == 63) {
    *x += 0;
    __threadfence();
    atomicExch(lock, 0);
  }
}
