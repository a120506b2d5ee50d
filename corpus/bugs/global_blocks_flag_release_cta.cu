// A message to another block whose sender's fence has block scope.
__global__ void k(int *data, int *flag, int *out) {
  if (blockIdx.x == 0) {
    *data = 42; // want error:insufficient-fence-scope
    __threadfence_block();
    atomicExch(flag, 1);
  } else {
    while (atomicAdd(flag, 0) == 0) {}
    __threadfence();
    *out = *data; // want error:insufficient-fence-scope
  }
}
