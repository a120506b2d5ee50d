// A relaxed store of a byte, and an atomic on the byte beside it by way of its own word's half.
__global__ void k(unsigned char *x, int *out) {
  int v;
  if (blockIdx.x == 0) {
    asm volatile("st.relaxed.gpu.u8 [%0], %1;" ::"l"(x), "r"(7) : "memory");
  } else {
    asm volatile("{.reg .b16 t; ld.relaxed.gpu.u16 t, [%1]; cvt.u32.u16 %0, t;}" : "=r"(v) : "l"(x + 2) : "memory");
    *out = v;
  }
}
