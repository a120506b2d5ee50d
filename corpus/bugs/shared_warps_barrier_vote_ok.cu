// A barrier that counts orders as one that does not.
__global__ void k(int *out) {
  __shared__ int s[64];
  int t = threadIdx.x;
  s[t] = t;
  int odd = __syncthreads_count(t % 2);
  out[t] = s[63 - t] + odd;
}
