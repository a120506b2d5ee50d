// Two warps of a block store into the same words.
__global__ void k(int *x) {
  x[threadIdx.x % 32] = threadIdx.x; // want error:missing-barrier
}
