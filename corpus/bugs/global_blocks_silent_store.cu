// A store of what is there already is a store.
__global__ void k(int *x, int *out) {
  if (blockIdx.x == 0)
    *x = 0; // want error:unordered
  else
    *out = *x; // want error:unordered
}
