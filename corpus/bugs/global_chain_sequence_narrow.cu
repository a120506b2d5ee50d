// A warp of the sender's block updates the flag by an atomic of block scope, which the other block cannot take up. (A word more tells when.)
__global__ void k(int *data, int *flag, int *out) {
  if (blockIdx.x == 0 && threadIdx.x == 0) {
    *data = 42; // want error:insufficient-atomic-scope
    __threadfence();
    atomicExch(flag, 1);
  } else if (blockIdx.x == 0 && threadIdx.x == 32) {
    while (atomicCAS_block(flag, 1, 2) != 1) {} // want error:insufficient-atomic-scope
    atomicExch(flag + 1, 1);
  } else if (blockIdx.x == 1 && threadIdx.x == 0) {
    while (atomicAdd(flag + 1, 0) == 0) {}
    while (atomicAdd(flag, 0) != 2) {} // want error:insufficient-atomic-scope
    __threadfence();
    *out = *data; // want error:insufficient-atomic-scope
  }
}
