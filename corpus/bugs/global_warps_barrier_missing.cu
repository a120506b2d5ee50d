// Warps of a block exchange words of global memory with no barrier between.
__global__ void k(int *x, int *out) {
  int t = threadIdx.x;
  x[t] = t;             // want error:missing-barrier
  out[t] = x[63 - t];   // want error:missing-barrier
}
