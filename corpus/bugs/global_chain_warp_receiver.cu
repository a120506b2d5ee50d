// One lane receives for its warp, and a shuffle hands nothing to the other lanes.
__global__ void k(int *data, int *flag, int *out) {
  int t = threadIdx.x;
  if (blockIdx.x == 0) {
    data[t] = t; // want error:missing-barrier
    __syncwarp();
    if (t == 0) {
      __threadfence();
      atomicExch(flag, 1);
    }
  } else {
    if (t == 0) {
      while (atomicAdd(flag, 0) == 0) {}
      __threadfence();
    }
    __shfl_sync(0xffffffff, t, 0);
    out[t] = data[31 - t]; // want error:missing-barrier
  }
}
