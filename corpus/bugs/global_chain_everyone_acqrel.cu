// Everyone has a fence before the barrier, but fence.acq_rel is no part of the flag's pattern there.
__global__ void k(int *data, int *flag, int *out) {
  int t = threadIdx.x;
  if (blockIdx.x == 0) {
    data[t] = t; // want error:unordered
    asm volatile("fence.acq_rel.gpu;" ::: "memory");
    __syncthreads();
    if (t == 32) atomicExch(flag, 1);
  } else {
    if (t == 0) {
      while (atomicAdd(flag, 0) == 0) {}
      __threadfence();
    }
    __syncthreads();
    out[t] = data[63 - t]; // want error:unordered
  }
}
