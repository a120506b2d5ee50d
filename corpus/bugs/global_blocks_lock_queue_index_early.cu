// The number is raised under a lock before the item is written.
__device__ void take(int *lock) {
  while (atomicCAS(lock, 0, 1) != 0) {}
  __threadfence();
}

__device__ void give(int *lock) {
  __threadfence();
  atomicExch(lock, 0);
}

__global__ void k(int *item, int *count, int *lock, int *out) {
  int n;
  if (blockIdx.x == 0) {
    take(lock);
    *count = 1;
    give(lock);
    item[0] = 1; // want error:unordered
  } else {
    do {
      take(lock);
      n = *count;
      give(lock);
    } while (n == 0);
    out[0] = item[0]; // want error:unordered
  }
}
