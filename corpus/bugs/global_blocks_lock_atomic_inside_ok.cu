// What tells that the data are there is an atomic, which both access under a lock only.
__global__ void k(int *x, int *ready, int *lock, int *out) {
  int seen = 0;
  if (blockIdx.x == 0) *x = 9;
  do {
    while (atomicCAS(lock, 0, 1) != 0) {}
    __threadfence();
    if (blockIdx.x == 0) atomicExch(ready, 1);
    seen = atomicAdd(ready, 0);
    __threadfence();
    atomicExch(lock, 0);
  } while (seen == 0);
  if (blockIdx.x == 1) *out = *x;
}
