// Two arrays are cut out of one dynamic one; the second begins a word too early.
__global__ void k(int *out) {
  extern __shared__ int s[];
  int t = threadIdx.x, *a = s, *b = s + 63;
  a[t] = t;  // want error:missing-barrier
  b[t] = -t; // want error:missing-barrier
  __syncthreads();
  out[t] = a[t] + b[t];
}
