// A lock that is taken without a fence.
__global__ void k(int *x, int *lock) {
  if (threadIdx.x != 0) return;
  while (atomicCAS(lock, 0, 1) != 0) {}
  *x += 1; // want error:missing-fence
  __threadfence();
  atomicExch(lock, 0);
}
