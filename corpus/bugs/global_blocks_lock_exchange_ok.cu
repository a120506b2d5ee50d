// A lock that is taken by an exchange.
__global__ void k(int *x, int *lock) {
  if (threadIdx.x != 0) return;
  while (atomicExch(lock, 1) != 0) {}
  __threadfence();
  *x += 1;
  __threadfence();
  atomicExch(lock, 0);
}
