// The receiving block has no barrier behind the message: only the receiving thread may read.
__device__ int load(int *p) {
  int v;
  asm volatile("ld.acquire.gpu.u32 %0, [%1];" : "=r"(v) : "l"(p) : "memory");
  return v;
}

__global__ void k(int *data, int *flag, int *out) {
  int t = threadIdx.x;
  if (blockIdx.x == 0) {
    data[t] = t; // want error:missing-barrier
    __syncthreads();
    if (t == 0) {
      __threadfence();
      atomicExch(flag, 1);
    }
  } else {
    if (t == 0) {
      while (load(flag) == 0) {}
    }
    out[t] = data[63 - t]; // want error:missing-barrier
  }
}
