// A queue of waiters: each thread tells the one behind it.
__global__ void k(int *x, int *tail, int *next, int *go) {
  int me = blockIdx.x, before = atomicExch(tail, me), after;
  if (before >= 0) {
    atomicExch(next + before, me);
    while (atomicAdd(go + me, 0) == 0) {}
  }
  __threadfence();
  *x += 1;
  __threadfence();
  if (atomicCAS(tail, me, -1) == me) return;
  while ((after = atomicAdd(next + me, 0)) < 0) {}
  atomicExch(go + after, 1);
}
