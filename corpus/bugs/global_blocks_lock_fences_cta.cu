// A lock of all blocks with fences of block scope.
__global__ void k(int *x, int *lock) {
  if (threadIdx.x != 0) return;
  while (atomicCAS(lock, 0, 1) != 0) {}
  __threadfence_block();
  *x += 1; // want error:insufficient-lock-scope
  __threadfence_block();
  atomicExch(lock, 0);
}
