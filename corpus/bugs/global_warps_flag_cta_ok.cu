// A message between warps of a block: block scope is enough.
__global__ void k(int *data, int *flag, int *out) {
  if (threadIdx.x == 0) {
    *data = 42;
    __threadfence_block();
    atomicExch_block(flag, 1);
  } else if (threadIdx.x == 32) {
    while (atomicAdd_block(flag, 0) == 0) {}
    __threadfence_block();
    *out = *data;
  }
}
