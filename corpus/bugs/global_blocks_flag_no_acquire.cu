// A message whose receiver has no fence.
__global__ void k(int *data, int *flag, int *out) {
  if (blockIdx.x == 0) {
    *data = 42; // want error:missing-fence
    __threadfence();
    atomicExch(flag, 1);
  } else {
    while (atomicAdd(flag, 0) == 0) {}
    *out = *data; // want error:missing-fence
  }
}
