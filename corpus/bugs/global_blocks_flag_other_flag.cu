// The receiver waits for the flag of a block that has sent nothing.
__global__ void k(int *data, int *flag, int *out) {
  if (blockIdx.x == 0) {
    *data = 42; // want error:unordered
    __threadfence();
    atomicExch(flag, 1);
  } else if (blockIdx.x == 1) {
    while (atomicAdd(flag + 1, 0) == 0) {}
    __threadfence();
    *out = *data; // want error:unordered
  } else {
    __threadfence();
    atomicExch(flag + 1, 1);
  }
}
