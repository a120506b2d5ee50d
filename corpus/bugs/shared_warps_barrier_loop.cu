// The next round's stores may come before another warp has loaded this round's words.
__global__ void k(int *out) {
  __shared__ int s[64];
  int t = threadIdx.x, sum = 0;
  for (int i = 0; i < 3; i++) {
    s[t] = t + i; // want error:missing-barrier
    __syncthreads();
    sum += s[63 - t]; // want error:missing-barrier
  }
  out[t] = sum;
}
