// A lock for many readers or one writer, and a reader that writes.
__global__ void k(int *x, int *lock) {
  const int writer = 100;
  while (atomicAdd(lock, 1) >= writer) atomicSub(lock, 1);
  while (atomicAdd(lock, 0) < 4) {} // all are in
  __threadfence();
  *x = blockIdx.x; // want error:unordered
}
