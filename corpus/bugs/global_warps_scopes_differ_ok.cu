// A release of block scope meets an acquire of system scope in the same block: either takes in the other thread.
__global__ void k(int *data, int *flag, int *out) {
  int v;
  if (threadIdx.x == 0) {
    *data = 42;
    asm volatile("st.release.cta.u32 [%0], 1;" ::"l"(flag) : "memory");
  } else if (threadIdx.x == 32) {
    do asm volatile("ld.acquire.sys.u32 %0, [%1];" : "=r"(v) : "l"(flag) : "memory");
    while (v == 0);
    *out = *data;
  }
}
