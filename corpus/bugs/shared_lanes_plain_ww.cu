// Pairs of lanes store different values into one word of shared memory.
__global__ void k(int *out) {
  __shared__ int s[16];
  s[threadIdx.x / 2] = threadIdx.x; // want error:unordered
  __syncwarp();
  if (threadIdx.x == 0) *out = s[0];
}
