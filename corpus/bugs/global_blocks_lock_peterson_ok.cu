// Peterson's lock of two threads, in order by fences.
__global__ void k(int *x, int *want, int *turn) {
  int me = blockIdx.x, other = 1 - me;
  atomicExch(want + me, 1);
  __threadfence();
  atomicExch(turn, other);
  __threadfence();
  while (atomicAdd(want + other, 0) == 1 && atomicAdd(turn, 0) == other) {}
  __threadfence();
  *x += 1;
  __threadfence();
  atomicExch(want + me, 0);
}
