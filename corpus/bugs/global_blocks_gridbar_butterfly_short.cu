// A barrier of the grid in rounds that ends a round too early: nobody has heard of the block two away.
__global__ void k(int *x, int *flag, int *out) {
  int me = blockIdx.x;
  x[me] = me; // want error:unordered
  for (int round = 0; round < 1; round++) {
    __threadfence();
    atomicExch(flag + round * 4 + (me + (1 << round)) % 4, 1);
    while (atomicAdd(flag + round * 4 + me, 0) == 0) {}
    __threadfence();
  }
  out[me] = x[(me + 2) % 4]; // want error:unordered
}
