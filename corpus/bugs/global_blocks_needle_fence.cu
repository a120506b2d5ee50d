// A barrier of the grid at which one block of sixteen has no fence before it arrives.
__global__ void k(int *x, int *arrived, int *out) {
  int i = blockIdx.x * 64 + threadIdx.x;
  x[i] = i; // want error:missing-fence
  __syncthreads();
  if (threadIdx.x == 0) {
    if (blockIdx.x != 5) __threadfence();
    atomicAdd(arrived, 1);
    while (atomicOr(arrived, 0) < 16) {}
    __threadfence();
  }
  __syncthreads();
  out[i] = x[(i + 64) % 1024]; // want error:missing-fence
}
