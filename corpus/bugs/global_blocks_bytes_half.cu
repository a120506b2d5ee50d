// A store of two bytes and a store of the last one of them.
__global__ void k(unsigned char *x) {
  if (blockIdx.x == 0)
    *(unsigned short *)(x + 2) = 1; // want error:unordered
  else
    x[3] = 2; // want error:unordered
}
