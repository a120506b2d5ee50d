// The last block to arrive at a barrier of the grid turns the sense without having acquired what the others released.
__global__ void k(int *x, int *arrived, int *sense, int *out) {
  int i = blockIdx.x * 32 + threadIdx.x;
  x[i] = i; // want error:missing-fence
  __syncthreads();
  if (threadIdx.x == 0) {
    if (atomicAdd(arrived, 1) == 1)
      atomicExch(sense, 1);
    else
      while (atomicAdd(sense, 0) == 0) {}
    __threadfence();
  }
  __syncthreads();
  out[i] = x[63 - i]; // want error:missing-fence
}
