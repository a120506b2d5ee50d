// Two words are stored as one vector of relaxed elements, and one of them is loaded.
__global__ void k(int *x, int *out) {
  int v;
  if (blockIdx.x == 0) {
    asm volatile("st.relaxed.gpu.v2.u32 [%0], {%1, %1};" ::"l"(x), "r"(7) : "memory");
  } else {
    asm volatile("ld.relaxed.gpu.u32 %0, [%1];" : "=r"(v) : "l"(x + 1) : "memory");
    *out = v;
  }
}
