// A message by relaxed accesses: they hand over the flag and nothing else.
__global__ void k(int *data, int *flag, int *out) {
  int v;
  if (blockIdx.x == 0) {
    *data = 42; // want error:missing-fence
    asm volatile("st.relaxed.gpu.u32 [%0], 1;" ::"l"(flag) : "memory");
  } else {
    do asm volatile("ld.relaxed.gpu.u32 %0, [%1];" : "=r"(v) : "l"(flag) : "memory");
    while (v == 0);
    *out = *data; // want error:missing-fence
  }
}
