// A barrier of the grid without the block's barrier before it.
__global__ void k(int *x, int *arrived, int *out) {
  int i = blockIdx.x * 64 + threadIdx.x;
  x[i] = i; // want error:missing-barrier
  if (threadIdx.x == 0) {
    __threadfence();
    atomicAdd(arrived, 1);
    while (atomicAdd(arrived, 0) < 2) {}
    __threadfence();
  }
  __syncthreads();
  out[i] = x[127 - i]; // want error:missing-barrier
}
