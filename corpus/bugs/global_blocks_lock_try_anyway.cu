// A block that does not get the lock goes on all the same.
__global__ void k(int *x, int *lock, int *done) {
  if (atomicCAS(lock, 0, 1) == 0) {
    __threadfence();
    *x = 1; // want error:missing-lock
    while (atomicAdd(done, 0) == 0) {}
    __threadfence();
    atomicExch(lock, 0);
  } else {
    *x = 2; // want error:missing-lock
    atomicAdd(done, 1);
  }
}
