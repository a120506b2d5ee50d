// Volatile words between warps, and no barrier.
__global__ void k(int *out) {
  __shared__ volatile int s[64];
  int t = threadIdx.x;
  s[t] = t; // want warning:volatile
  out[t] = s[63 - t]; // want warning:volatile
}
