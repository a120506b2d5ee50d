// Two words are stored as one vector of relaxed elements, and loaded as one double word.
__global__ void k(int *x, int *out) {
  long long v;
  if (blockIdx.x == 0) {
    asm volatile("st.relaxed.gpu.v2.u32 [%0], {%1, %1};" ::"l"(x), "r"(7) : "memory"); // want error:mixed-size
  } else {
    asm volatile("ld.relaxed.gpu.u64 %0, [%1];" : "=l"(v) : "l"(x) : "memory"); // want error:mixed-size
    *out = (int)v;
  }
}
