// A 16-bit compare-and-swap on the upper half of a word that a 32-bit atomic adds to.
__global__ void k(unsigned *x) {
  if (blockIdx.x == 0)
    atomicAdd(x, 1); // want warning:mixed-size
  else
    atomicCAS((unsigned short *)x + 1, (unsigned short)0, (unsigned short)1); // want warning:mixed-size
}
