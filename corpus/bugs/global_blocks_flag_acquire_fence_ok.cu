// A release by fence and relaxed store, and an acquire load: the two kinds of pattern go together.
__global__ void k(int *data, int *flag, int *out) {
  int v;
  if (blockIdx.x == 0) {
    *data = 42;
    asm volatile("fence.acq_rel.gpu; st.relaxed.gpu.u32 [%0], 1;" ::"l"(flag) : "memory");
  } else {
    do asm volatile("ld.acquire.gpu.u32 %0, [%1];" : "=r"(v) : "l"(flag) : "memory");
    while (v == 0);
    *out = *data;
  }
}
