// A byte for each thread, and one store of two bytes at the border of two blocks.
__global__ void k(unsigned char *x) {
  int i = blockIdx.x * 256 + threadIdx.x;
  x[i] = i; // want error:unordered
  if (i == 1023) *(unsigned short *)(x + 1024) = 7; // want error:unordered
}
