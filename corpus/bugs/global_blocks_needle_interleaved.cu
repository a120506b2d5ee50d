// Two blocks store every other word each; one thread loads a word of its own together with the one behind it.
__global__ void k(int *x, long long *out) {
  int pair = blockIdx.x / 2, i = 512 * pair + 2 * threadIdx.x + blockIdx.x % 2;
  x[i] = i; // want error:unordered
  if (i == 4000) *out = *(long long *)(x + i); // want error:unordered
}
