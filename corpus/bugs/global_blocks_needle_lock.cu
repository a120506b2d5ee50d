// Four words with a lock each; one block of 32 takes the wrong one.
__global__ void k(int *x, int *lock) {
  int mine = blockIdx.x % 4, held = blockIdx.x == 21 ? 2 : mine;
  while (atomicCAS(lock + held, 0, 1) != 0) {}
  __threadfence();
  x[mine] += 1; // want error:missing-lock
  __threadfence();
  atomicExch(lock + held, 0);
}
