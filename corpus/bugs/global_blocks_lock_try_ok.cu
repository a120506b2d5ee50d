// A block that does not get the lock at once leaves the word alone.
__global__ void k(int *x, int *lock) {
  if (threadIdx.x != 0) return;
  if (atomicCAS(lock, 0, 1) != 0) return;
  __threadfence();
  *x += 1;
  __threadfence();
  atomicExch(lock, 0);
}
