// Two locks, one within the other.
__global__ void k(int *x, int *y, int *lock) {
  while (atomicCAS(lock, 0, 1) != 0) {}
  __threadfence();
  *x += 1;
  while (atomicCAS(lock + 1, 0, 1) != 0) {}
  __threadfence();
  *y += 1;
  __threadfence();
  atomicExch(lock + 1, 0);
  __threadfence();
  atomicExch(lock, 0);
}
