// Block 1 updates the flag by a relaxed store, which ends what block 0 has released. (A word more tells when.)
__global__ void k(int *data, int *flag, int *out) {
  if (blockIdx.x == 0) {
    *data = 42; // want error:unordered
    __threadfence();
    atomicExch(flag, 1);
  } else if (blockIdx.x == 1) {
    while (atomicAdd(flag, 0) != 1) {}
    asm volatile("st.relaxed.gpu.u32 [%0], 2;" ::"l"(flag) : "memory");
    atomicExch(flag + 1, 1);
  } else {
    while (atomicAdd(flag + 1, 0) == 0) {}
    while (atomicAdd(flag, 0) != 2) {}
    __threadfence();
    *out = *data; // want error:unordered
  }
}
