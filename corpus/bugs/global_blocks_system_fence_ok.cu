// A message with fences of system scope.
__global__ void k(int *data, int *flag, int *out) {
  if (blockIdx.x == 0) {
    *data = 42;
    __threadfence_system();
    atomicExch_system(flag, 1);
  } else {
    while (atomicAdd_system(flag, 0) == 0) {}
    __threadfence_system();
    *out = *data;
  }
}
