// A lock that is polled by atomic loads and taken when it looks free.
__global__ void k(int *x, int *lock) {
  if (threadIdx.x != 0) return;
  do {
    while (atomicAdd(lock, 0) != 0) {}
  } while (atomicCAS(lock, 0, 1) != 0);
  __threadfence();
  *x += 1;
  __threadfence();
  atomicExch(lock, 0);
}
