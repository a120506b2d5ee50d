// The flag is set by a 64-bit store and polled by a 32-bit load: the two do not synchronise.
__global__ void k(int *data, unsigned long long *flag, int *out) {
  int v;
  if (blockIdx.x == 0) {
    *data = 42; // want error:unordered
    asm volatile("st.release.gpu.u64 [%0], 1;" ::"l"(flag) : "memory"); // want error:mixed-size
  } else {
    do asm volatile("ld.acquire.gpu.u32 %0, [%1];" : "=r"(v) : "l"(flag) : "memory"); // want error:mixed-size
    while (v == 0);
    *out = *data; // want error:unordered
  }
}
