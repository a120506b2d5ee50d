// A lock that is given back without a fence.
__global__ void k(int *x, int *lock) {
  if (threadIdx.x != 0) return;
  while (atomicCAS(lock, 0, 1) != 0) {}
  __threadfence();
  *x += 1; // want error:missing-fence
  atomicExch(lock, 0);
}
