// The lanes of a warp take a lock one after the other.
__global__ void k(int *x, int *lock) {
  for (bool done = false; !done;) {
    if (atomicCAS(lock, 0, 1) == 0) {
      __threadfence();
      *x += 1;
      __threadfence();
      atomicExch(lock, 0);
      done = true;
    }
  }
}
