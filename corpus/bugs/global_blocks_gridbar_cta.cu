// A barrier of the grid by a counter, with fences of block scope.
__global__ void k(int *x, int *arrived, int *out) {
  int i = blockIdx.x * 32 + threadIdx.x;
  x[i] = i; // want error:insufficient-fence-scope
  __syncthreads();
  if (threadIdx.x == 0) {
    __threadfence_block();
    atomicAdd(arrived, 1);
    while (atomicAdd(arrived, 0) < 2) {}
    __threadfence_block();
  }
  __syncthreads();
  out[i] = x[63 - i]; // want error:insufficient-fence-scope
}
