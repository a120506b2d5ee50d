// A barrier of the grid with a flag for each block, which the first block collects and answers.
__global__ void k(int *x, int *flag, int *out) {
  int t = threadIdx.x, i = blockIdx.x * 32 + t;
  x[i] = i;
  __syncthreads();
  if (blockIdx.x == 0) {
    if (t > 0 && t < 4) while (atomicAdd(flag + t, 0) != 1) {}
    __threadfence();
    __syncthreads();
    __threadfence();
    if (t > 0 && t < 4) atomicExch(flag + t, 2);
  } else if (t == 0) {
    __threadfence();
    atomicExch(flag + blockIdx.x, 1);
    while (atomicAdd(flag + blockIdx.x, 0) != 2) {}
    __threadfence();
  }
  __syncthreads();
  out[i] = x[127 - i];
}
