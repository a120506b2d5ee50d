// A barrier of the grid by a counter, without fences.
__global__ void k(int *x, int *arrived, int *out) {
  int i = blockIdx.x * 32 + threadIdx.x;
  x[i] = i; // want error:missing-fence
  __syncthreads();
  if (threadIdx.x == 0) {
    atomicAdd(arrived, 1);
    while (atomicAdd(arrived, 0) < 2) {}
  }
  __syncthreads();
  out[i] = x[63 - i]; // want error:missing-fence
}
