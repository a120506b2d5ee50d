// Locks hand over hand along a list: the next one is taken before the last one is given back.
__device__ void take(int *lock) {
  while (atomicCAS(lock, 0, 1) != 0) {}
  __threadfence();
}

__device__ void give(int *lock) {
  __threadfence();
  atomicExch(lock, 0);
}

__global__ void k(int *x, int *lock) {
  take(lock);
  for (int i = 0; i < 4; i++) {
    x[i] += 1;
    take(lock + i + 1);
    give(lock + i);
  }
  give(lock + 4);
}
