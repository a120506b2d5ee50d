// A vector of four words, and one of two right behind it.
__global__ void k(int *x) {
  if (blockIdx.x == 0)
    *(int4 *)x = make_int4(1, 2, 3, 4);
  else
    *(int2 *)(x + 4) = make_int2(5, 6);
}
