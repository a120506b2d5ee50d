// A 64-bit atomic, and a plain store of the word behind it.
__global__ void k(unsigned long long *x) {
  if (blockIdx.x == 0)
    atomicAdd(x, 1ull);
  else
    ((unsigned *)x)[2] = 7;
}
