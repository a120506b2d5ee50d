// The last step crosses blocks with a fence of block scope on the sender's side.
__global__ void k(int *data, int *flag, int *out) {
  if (blockIdx.x == 0 && threadIdx.x == 0) {
    *data = 42; // want error:insufficient-fence-scope
    __threadfence();
    atomicExch(flag, 1);
  } else if (blockIdx.x == 0 && threadIdx.x == 32) {
    while (atomicAdd(flag, 0) == 0) {}
    __threadfence_block();
    atomicExch(flag + 1, 1);
  } else if (blockIdx.x == 1 && threadIdx.x == 0) {
    while (atomicAdd(flag + 1, 0) == 0) {}
    __threadfence();
    *out = *data; // want error:insufficient-fence-scope
  }
}
