// Two warps store the same bytes at different widths.
__global__ void k(unsigned char *x) {
  if (threadIdx.x == 0)
    *(unsigned *)x = 0x01010101; // want warning:same-value
  else if (threadIdx.x == 32)
    x[2] = 1; // want warning:same-value
}
