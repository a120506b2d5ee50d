// A warp stores and is gone; the other one meets nobody at the barrier. (The PTX manual lets it pass.)
__global__ void k(int *out) {
  __shared__ int s[32];
  int t = threadIdx.x;
  if (t >= 32) {
    s[t - 32] = t; // want error:missing-barrier
    return;
  }
  __syncthreads(); // want warning:barrier-divergence
  out[t] = s[t]; // want error:missing-barrier
}
