// A message whose receiver's fence is before the wait.
__global__ void k(int *data, int *flag, int *out) {
  if (blockIdx.x == 0) {
    *data = 42; // want error:missing-fence
    __threadfence();
    atomicExch(flag, 1);
  } else {
    __threadfence();
    while (atomicAdd(flag, 0) == 0) {}
    *out = *data; // want error:missing-fence
  }
}
