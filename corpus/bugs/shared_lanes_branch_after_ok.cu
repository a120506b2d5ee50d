// What one path stored is loaded behind __syncwarp().
__global__ void k(int *out) {
  __shared__ int s[16];
  int t = threadIdx.x;
  if (t < 16) s[t] = t;
  __syncwarp();
  out[t] = s[t % 16];
}
