// A barrier of the grid by a counter.
__global__ void k(int *x, int *arrived, int *out) {
  int i = blockIdx.x * 32 + threadIdx.x;
  x[i] = i;
  __syncthreads();
  if (threadIdx.x == 0) {
    __threadfence();
    atomicAdd(arrived, 1);
    while (atomicAdd(arrived, 0) < 2) {}
    __threadfence();
  }
  __syncthreads();
  out[i] = x[63 - i];
}
