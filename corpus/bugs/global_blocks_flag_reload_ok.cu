// The receiver polls by relaxed loads, and loads once more to acquire.
__global__ void k(int *data, int *flag, int *out) {
  int v;
  if (blockIdx.x == 0) {
    *data = 42;
    asm volatile("red.release.gpu.global.add.u32 [%0], 1;" ::"l"(flag) : "memory");
  } else {
    do asm volatile("ld.relaxed.gpu.u32 %0, [%1];" : "=r"(v) : "l"(flag) : "memory");
    while (v == 0);
    asm volatile("ld.acquire.gpu.u32 %0, [%1];" : "=r"(v) : "l"(flag) : "memory");
    *out = *data;
  }
}
