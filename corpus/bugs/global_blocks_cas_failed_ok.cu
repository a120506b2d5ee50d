// A compare-and-swap that fails only reads: no race with a plain load.
__global__ void k(int *x, int *out) {
  if (blockIdx.x == 0)
    out[0] = atomicCAS(x, 5, 6);
  else
    out[1] = *x;
}
