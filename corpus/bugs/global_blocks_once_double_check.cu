// Double-checked initialisation whose first check is a plain load.
__global__ void k(int *x, int *done, int *lock, int *out) {
  if (*done == 0) { // want error:missing-lock
    while (atomicCAS(lock, 0, 1) != 0) {}
    __threadfence();
    if (*done == 0) {
      *x = 42;
      __threadfence();
      *done = 1; // want error:missing-lock
    }
    __threadfence();
    atomicExch(lock, 0);
  }
  out[blockIdx.x] = blockIdx.x;
}
