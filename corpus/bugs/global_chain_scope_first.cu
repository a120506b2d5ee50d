// The first step crosses blocks with fences of block scope, the second one is right.
__global__ void k(int *data, int *flag, int *out) {
  if (blockIdx.x == 0 && threadIdx.x == 0) {
    *data = 42; // want error:unordered
    __threadfence_block();
    atomicExch(flag, 1);
  } else if (blockIdx.x == 1 && threadIdx.x == 0) {
    while (atomicAdd(flag, 0) == 0) {}
    __threadfence_block();
    atomicExch_block(flag + 1, 1);
  } else if (blockIdx.x == 1 && threadIdx.x == 32) {
    while (atomicAdd_block(flag + 1, 0) == 0) {}
    __threadfence_block();
    *out = *data; // want error:unordered
  }
}
