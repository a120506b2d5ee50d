// The word is stored when the lock has been given back.
__global__ void k(int *x, int *lock) {
  if (threadIdx.x != 0) return;
  while (atomicCAS(lock, 0, 1) != 0) {}
  __threadfence();
  int v = *x; // want error:missing-lock
  __threadfence();
  atomicExch(lock, 0);
  *x = v + 1; // want error:unordered error:missing-lock
}
