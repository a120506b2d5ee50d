// One thread signals for its block, but its fence comes before the barrier: what the others have stored is not released.
__global__ void k(int *data, int *flag, int *out) {
  int t = threadIdx.x;
  if (blockIdx.x == 0) {
    data[t] = t; // want error:missing-fence
    if (t == 0) __threadfence();
    __syncthreads();
    if (t == 0) atomicExch(flag, 1);
  } else {
    if (t == 0) {
      while (atomicAdd(flag, 0) == 0) {}
      __threadfence();
    }
    __syncthreads();
    out[t] = data[63 - t]; // want error:missing-fence
  }
}
