// The shared memory of each block is its own, at the same addresses.
__global__ void k(int *out) {
  __shared__ int s[64];
  int t = threadIdx.x;
  s[t] = blockIdx.x * 64 + t;
  __syncthreads();
  out[blockIdx.x * 64 + t] = s[63 - t];
}
