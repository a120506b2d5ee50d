// A message that is written when the flag is up.
__global__ void k(int *data, int *flag, int *out) {
  if (blockIdx.x == 0) {
    __threadfence();
    atomicExch(flag, 1);
    *data = 42; // want error:unordered
  } else {
    while (atomicAdd(flag, 0) == 0) {}
    __threadfence();
    *out = *data; // want error:unordered
  }
}
