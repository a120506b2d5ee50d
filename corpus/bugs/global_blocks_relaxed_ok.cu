// A relaxed store and a relaxed load of device scope are atomic.
__global__ void k(int *x, int *out) {
  int v;
  if (blockIdx.x == 0) {
    asm volatile("st.relaxed.gpu.u32 [%0], 1;" ::"l"(x) : "memory");
  } else {
    asm volatile("ld.relaxed.gpu.u32 %0, [%1];" : "=r"(v) : "l"(x) : "memory");
    *out = v;
  }
}
