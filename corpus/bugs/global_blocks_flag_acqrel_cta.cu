// A release store of block scope, for another block.
__global__ void k(int *data, int *flag, int *out) {
  int v;
  if (blockIdx.x == 0) {
    *data = 42; // want error:insufficient-atomic-scope
    asm volatile("st.release.cta.u32 [%0], 1;" ::"l"(flag) : "memory"); // want error:insufficient-atomic-scope
  } else {
    do asm volatile("ld.acquire.gpu.u32 %0, [%1];" : "=r"(v) : "l"(flag) : "memory"); // want error:insufficient-atomic-scope
    while (v == 0);
    *out = *data; // want error:insufficient-atomic-scope
  }
}
