// The lanes of a warp take a lock one after the other, without fences.
__global__ void k(int *x, int *lock) {
  for (bool done = false; !done;) {
    if (atomicCAS(lock, 0, 1) == 0) {
      *x += 1; // want error:missing-fence
      atomicExch(lock, 0);
      done = true;
    }
  }
}
