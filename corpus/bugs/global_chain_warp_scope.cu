// One lane signals for its warp, with a fence that does not reach beyond the block.
__global__ void k(int *data, int *flag, int *out) {
  int t = threadIdx.x;
  if (blockIdx.x == 0) {
    data[t] = t; // want error:insufficient-fence-scope
    __syncwarp();
    if (t == 0) {
      __threadfence_block();
      atomicExch(flag, 1);
    }
  } else {
    if (t == 0) {
      while (atomicAdd(flag, 0) == 0) {}
      __threadfence();
    }
    __syncwarp();
    out[t] = data[31 - t]; // want error:insufficient-fence-scope
  }
}
