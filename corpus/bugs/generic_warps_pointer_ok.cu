// Half the threads mean shared memory by a pointer, half global memory: the same index is not the same word.
__global__ void k(int *x, int *out) {
  __shared__ int s[64];
  int t = threadIdx.x, *p = t < 32 ? s : x;
  p[t % 32] = t;
  __syncthreads();
  out[t] = (t < 32 ? x : s)[t % 32];
}
