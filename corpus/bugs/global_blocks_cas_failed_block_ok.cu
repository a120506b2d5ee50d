// Two compare-and-swaps that fail only read: their block scope does not matter.
__global__ void k(int *x, int *out) {
  out[blockIdx.x] = atomicCAS_block(x, 5, 6);
}
