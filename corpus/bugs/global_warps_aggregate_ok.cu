// One lane counts for its warp and tells the others by a shuffle.
__global__ void k(int *count, int *out) {
  int t = threadIdx.x, base = 0;
  unsigned odd = __ballot_sync(0xffffffff, t % 2);
  if (t % 32 == 0) base = atomicAdd(count, __popc(odd));
  base = __shfl_sync(0xffffffff, base, 0);
  if (t % 2) out[base + __popc(odd & ((1u << t % 32) - 1))] = t;
}
