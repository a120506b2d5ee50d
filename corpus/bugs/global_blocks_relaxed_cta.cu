// A relaxed load of block scope, of what another block stores.
__global__ void k(int *x, int *out) {
  int v;
  if (blockIdx.x == 0) {
    asm volatile("st.relaxed.gpu.u32 [%0], 1;" ::"l"(x) : "memory"); // want error:insufficient-atomic-scope
  } else {
    asm volatile("ld.relaxed.cta.u32 %0, [%1];" : "=r"(v) : "l"(x) : "memory"); // want error:insufficient-atomic-scope
    *out = v;
  }
}
