// A message from block 0 to block 2 by way of block 1.
__global__ void k(int *data, int *flag, int *out) {
  if (blockIdx.x == 0) {
    *data = 42;
    __threadfence();
    atomicExch(flag, 1);
  } else if (blockIdx.x == 1) {
    while (atomicAdd(flag, 0) == 0) {}
    __threadfence();
    atomicExch(flag + 1, 1);
  } else {
    while (atomicAdd(flag + 1, 0) == 0) {}
    __threadfence();
    *out = *data;
  }
}
