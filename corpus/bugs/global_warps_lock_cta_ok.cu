// A lock for each block: block scope is enough.
__global__ void k(int *x, int *lock) {
  int b = blockIdx.x;
  if (threadIdx.x % 32 != 0) return;
  while (atomicCAS_block(lock + b, 0, 1) != 0) {}
  __threadfence_block();
  x[b] += 1;
  __threadfence_block();
  atomicExch_block(lock + b, 0);
}
