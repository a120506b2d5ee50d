// Each block takes a lock of its own.
__global__ void k(int *x, int *lock) {
  if (threadIdx.x != 0) return;
  while (atomicCAS(lock + blockIdx.x, 0, 1) != 0) {}
  __threadfence();
  *x += 1; // want error:missing-lock
  __threadfence();
  atomicExch(lock + blockIdx.x, 0);
}
