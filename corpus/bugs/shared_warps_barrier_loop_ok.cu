// Two barriers a round, one on either side of the loads.
__global__ void k(int *out) {
  __shared__ int s[64];
  int t = threadIdx.x, sum = 0;
  for (int i = 0; i < 3; i++) {
    s[t] = t + i;
    __syncthreads();
    sum += s[63 - t];
    __syncthreads();
  }
  out[t] = sum;
}
