// The four bytes of a word belong to four blocks.
__global__ void k(unsigned char *x) {
  x[blockIdx.x] = blockIdx.x + 1;
}
