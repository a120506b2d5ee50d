// Block 1 updates the flag by a relaxed atomic, which carries block 0's release on.
__global__ void k(int *data, int *flag, int *out) {
  if (blockIdx.x == 0) {
    *data = 42;
    __threadfence();
    atomicExch(flag, 1);
  } else if (blockIdx.x == 1) {
    while (atomicCAS(flag, 1, 2) != 1) {}
  } else {
    while (atomicAdd(flag, 0) != 2) {}
    __threadfence();
    *out = *data;
  }
}
