// Threads own three bytes each and store four.
__global__ void k(int *out) {
  __shared__ unsigned char s[300];
  int t = threadIdx.x % 32 * 3 + threadIdx.x / 32;
  for (int i = 0; i < 4; i++) s[3 * t + i] = t + i; // want error:missing-barrier
  __syncthreads();
  out[t] = s[3 * t];
}
