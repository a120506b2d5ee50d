// A plain store of the last byte of a word that another block updates by an atomic.
__global__ void k(unsigned *x) {
  if (blockIdx.x == 0)
    atomicOr(x, 1u); // want error:atomic-mixed-with-plain
  else
    ((unsigned char *)x)[3] = 1; // want error:atomic-mixed-with-plain
}
