// One barrier a round is enough with two buffers that take turns.
__global__ void k(int *out) {
  __shared__ int s[2][64];
  int t = threadIdx.x, sum = 0;
  for (int i = 0; i < 3; i++) {
    s[i % 2][t] = t + i;
    __syncthreads();
    sum += s[i % 2][63 - t];
  }
  out[t] = sum;
}
