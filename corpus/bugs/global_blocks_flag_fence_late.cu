// A message whose sender's fence comes after the flag.
__global__ void k(int *data, int *flag, int *out) {
  if (blockIdx.x == 0) {
    *data = 42; // want error:missing-fence
    atomicExch(flag, 1);
    __threadfence();
  } else {
    while (atomicAdd(flag, 0) == 0) {}
    __threadfence();
    *out = *data; // want error:missing-fence
  }
}
