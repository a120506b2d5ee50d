// Threads own three bytes each, which share words with their neighbours' (in another warp for some).
__global__ void k(int *out) {
  __shared__ unsigned char s[192];
  int t = (threadIdx.x + 31) % 64;
  for (int i = 0; i < 3; i++) s[3 * t + i] = t + i;
  out[t] = s[3 * t] + s[3 * t + 1] + s[3 * t + 2] + 3;
}
