// Vectors of 16 bytes side by side, and one byte that another block stores into one of them.
__global__ void k(int4 *x) {
  int i = blockIdx.x * 64 + threadIdx.x;
  x[i] = make_int4(i, i, i, i); // want error:unordered
  if (i == 700) ((char *)x)[16 * 1300 + 7] = 1; // want error:unordered
}
