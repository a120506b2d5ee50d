// Block 1 passes the message on without a fence.
__global__ void k(int *data, int *flag, int *out) {
  if (blockIdx.x == 0) {
    *data = 42; // want error:unordered
    __threadfence();
    atomicExch(flag, 1);
  } else if (blockIdx.x == 1) {
    while (atomicAdd(flag, 0) == 0) {}
    atomicExch(flag + 1, 1);
  } else {
    while (atomicAdd(flag + 1, 0) == 0) {}
    __threadfence();
    *out = *data; // want error:unordered
  }
}
