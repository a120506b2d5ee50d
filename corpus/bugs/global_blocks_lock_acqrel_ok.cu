// A lock by operations that acquire and release.
__global__ void k(int *x, int *lock) {
  int old;
  if (threadIdx.x != 0) return;
  do asm volatile("atom.acquire.gpu.cas.b32 %0, [%1], 0, 1;" : "=r"(old) : "l"(lock) : "memory");
  while (old);
  *x += 1;
  asm volatile("st.release.gpu.u32 [%0], 0;" ::"l"(lock) : "memory");
}
