// Two arrays are cut out of one dynamic one.
__global__ void k(int *out) {
  extern __shared__ int s[];
  int t = threadIdx.x, *a = s, *b = s + 64;
  a[t] = t;
  b[t] = -t;
  __syncthreads();
  out[t] = a[t] + b[t];
}
