// Two words stored as a vector are the second half of one double word and the first half of another.
__global__ void k(int *x, long long *out) {
  if (threadIdx.x == 0) {
    x[1] = 1; // want error:missing-barrier
    x[2] = 2;
  } else if (threadIdx.x == 32) {
    *out = *(long long *)x; // want error:missing-barrier
  }
}
