// From warp to warp at block scope, and on to another block at device scope: the scopes of each step are enough.
__global__ void k(int *data, int *flag, int *out) {
  if (blockIdx.x == 0 && threadIdx.x == 0) {
    *data = 42;
    __threadfence_block();
    atomicExch_block(flag, 1);
  } else if (blockIdx.x == 0 && threadIdx.x == 32) {
    while (atomicAdd_block(flag, 0) == 0) {}
    __threadfence();
    atomicExch(flag + 1, 1);
  } else if (blockIdx.x == 1 && threadIdx.x == 0) {
    while (atomicAdd(flag + 1, 0) == 0) {}
    __threadfence();
    *out = *data;
  }
}
