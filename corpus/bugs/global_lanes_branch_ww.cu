// The two paths of a branch store different values into one word.
__global__ void k(int *x) {
  if (threadIdx.x == 0)
    *x = 1; // want error:missing-barrier
  else
    *x = 2; // want error:missing-barrier
}
