// Blocks store into words that lie between those of others, none into another's.
__global__ void k(int *x) {
  x[threadIdx.x * 4 + blockIdx.x] = blockIdx.x * 32 + threadIdx.x;
}
