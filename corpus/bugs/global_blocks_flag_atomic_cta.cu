// A message to another block whose flag is set by an atomic of block scope.
__global__ void k(int *data, int *flag, int *out) {
  if (blockIdx.x == 0) {
    *data = 42; // want error:insufficient-atomic-scope
    __threadfence();
    atomicExch_block(flag, 1); // want error:insufficient-atomic-scope
  } else {
    while (atomicAdd(flag, 0) == 0) {} // want error:insufficient-atomic-scope
    __threadfence();
    *out = *data; // want error:insufficient-atomic-scope
  }
}
