// One thread takes the lock for its block, and gives it back without waiting for the others.
__global__ void k(int *x, int *lock) {
  if (threadIdx.x == 0) {
    while (atomicCAS(lock, 0, 1) != 0) {}
    __threadfence();
  }
  __syncthreads();
  x[63 - threadIdx.x] = blockIdx.x; // want error:missing-barrier
  if (threadIdx.x == 0) {
    __threadfence();
    atomicExch(lock, 0);
  }
}
