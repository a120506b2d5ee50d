// A message from another block whose receiver's fence has block scope.
__global__ void k(int *data, int *flag, int *out) {
  if (blockIdx.x == 0) {
    *data = 42; // want error:insufficient-fence-scope
    __threadfence();
    atomicExch(flag, 1);
  } else {
    while (atomicAdd(flag, 0) == 0) {}
    __threadfence_block();
    *out = *data; // want error:insufficient-fence-scope
  }
}
