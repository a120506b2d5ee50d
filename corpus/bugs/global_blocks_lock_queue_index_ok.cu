// Items are written before their number is raised under a lock, and read after it was seen under the lock.
__device__ void take(int *lock) {
  while (atomicCAS(lock, 0, 1) != 0) {}
  __threadfence();
}

__device__ void give(int *lock) {
  __threadfence();
  atomicExch(lock, 0);
}

__global__ void k(int *item, int *count, int *lock, int *out) {
  for (int i = 0; i < 4; i++) {
    if (blockIdx.x == 0) {
      item[i] = i + 1;
      take(lock);
      *count = i + 1;
      give(lock);
    } else {
      int n;
      do {
        take(lock);
        n = *count;
        give(lock);
      } while (n <= i);
      out[i] = item[i];
    }
  }
}
