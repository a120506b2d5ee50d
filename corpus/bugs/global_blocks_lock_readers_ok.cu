// A lock for many readers or one writer.
__global__ void k(int *x, int *lock, int *out) {
  const int writer = 100;
  if (blockIdx.x == 0) {
    while (atomicCAS(lock, 0, writer) != 0) {}
    __threadfence();
    *x = 7;
    __threadfence();
    atomicSub(lock, writer);
  } else {
    while (atomicAdd(lock, 1) >= writer) atomicSub(lock, 1);
    __threadfence();
    out[blockIdx.x] = *x;
    __threadfence();
    atomicSub(lock, 1);
  }
}
