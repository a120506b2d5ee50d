// One block takes the lock and the other one, told by a flag, gives it back.
__global__ void k(int *x, int *lock, int *go, int *out) {
  if (blockIdx.x == 0) {
    while (atomicCAS(lock, 0, 1) != 0) {}
    __threadfence();
    *x = 1;
    __threadfence();
    atomicExch(go, 1);
    while (atomicCAS(lock, 0, 1) != 0) {}
    __threadfence();
    *out = *x;
  } else {
    while (atomicAdd(go, 0) == 0) {}
    __threadfence();
    *x += 2;
    __threadfence();
    atomicExch(lock, 0);
  }
}
