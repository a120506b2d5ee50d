// A lock that is taken when the kernel begins: who gives it back has written first, and others hand it on.
__global__ void k(int *x, int *lock, int *out) {
  if (blockIdx.x == 0) {
    *x = 7;
    __threadfence();
    atomicExch(lock, 0);
  }
  while (atomicCAS(lock, 0, 1) != 0) {}
  __threadfence();
  out[blockIdx.x] = *x;
  __threadfence();
  atomicExch(lock, 0);
}
