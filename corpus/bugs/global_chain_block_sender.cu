// The sending block has no barrier before its message: only the sending thread's own words are handed over.
__global__ void k(int *data, int *flag, int *out) {
  int t = threadIdx.x;
  if (blockIdx.x == 0) {
    data[t] = t; // want error:missing-barrier
    if (t == 0) {
      __threadfence();
      atomicExch(flag, 1);
    }
  } else {
    if (t == 0) {
      while (atomicAdd(flag, 0) == 0) {}
      __threadfence();
    }
    __syncthreads();
    out[t] = data[63 - t]; // want error:missing-barrier
  }
}
