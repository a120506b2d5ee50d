// One block stores a vector of four words, another one loads its third.
__global__ void k(int4 *x, int *out) {
  if (blockIdx.x == 0)
    *x = make_int4(1, 2, 3, 4); // want error:unordered
  else
    *out = x->z; // want error:unordered
}
