// The old way to add up within a warp: volatile, and nothing between the steps.
__global__ void k(int *out) {
  __shared__ volatile int s[48];
  int t = threadIdx.x;
  s[t] = t; // want warning:warp-synchronous
  s[t] += s[(t + 16) % 32]; // want warning:warp-synchronous
  if (t == 0) *out = s[0];
}
