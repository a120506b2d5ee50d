// A lock of all blocks that is taken by a compare-and-swap of block scope.
__global__ void k(int *x, int *lock) {
  if (threadIdx.x != 0) return;
  while (atomicCAS_block(lock, 0, 1) != 0) {} // want error:insufficient-atomic-scope
  __threadfence();
  *x += 1; // want error:insufficient-lock-scope
  __threadfence();
  atomicExch(lock, 0); // want error:insufficient-atomic-scope
}
