// A block's barrier orders its accesses to global memory too.
__global__ void k(int *x, int *out) {
  int t = threadIdx.x;
  x[t] = t;
  __syncthreads();
  out[t] = x[63 - t];
}
