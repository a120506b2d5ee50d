// The first block that comes initialises; the others wait until it has.
__global__ void k(int *x, int *state, int *out) {
  if (atomicCAS(state, 0, 1) == 0) {
    *x = 42;
    __threadfence();
    atomicExch(state, 2);
  } else {
    while (atomicAdd(state, 0) != 2) {}
    __threadfence();
  }
  out[blockIdx.x] = *x;
}
