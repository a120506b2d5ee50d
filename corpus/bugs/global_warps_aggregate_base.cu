// One lane of each warp takes room for its warp by a plain update.
__global__ void k(int *count, int *out) {
  int t = threadIdx.x, base = 0;
  if (t % 32 == 0) {
    base = *count; // want error:missing-barrier
    *count = base + 32; // want error:missing-barrier
  }
  base = __shfl_sync(0xffffffff, base, 0);
  atomicAdd(out + base % 64, t);
}
