// A message by a release store and an acquire load.
__global__ void k(int *data, int *flag, int *out) {
  int v;
  if (blockIdx.x == 0) {
    *data = 42;
    asm volatile("st.release.gpu.u32 [%0], 1;" ::"l"(flag) : "memory");
  } else {
    do asm volatile("ld.acquire.gpu.u32 %0, [%1];" : "=r"(v) : "l"(flag) : "memory");
    while (v == 0);
    *out = *data;
  }
}
