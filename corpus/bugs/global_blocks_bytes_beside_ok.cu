// A store of two bytes and stores of the bytes on either side of them.
__global__ void k(unsigned char *x) {
  if (blockIdx.x == 0)
    *(unsigned short *)(x + 2) = 1;
  else
    x[1] = x[0] = 2;
}
