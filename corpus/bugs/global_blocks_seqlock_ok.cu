// A sequence lock whose data are atomics.
__global__ void k(int *x, int *seq, int *out) {
  if (blockIdx.x == 0) {
    atomicAdd(seq, 1);
    __threadfence();
    atomicExch(x, 7);
    atomicExch(x + 1, 7);
    __threadfence();
    atomicAdd(seq, 1);
  } else {
    int before, after, a, b;
    do {
      before = atomicAdd(seq, 0);
      __threadfence();
      a = atomicAdd(x, 0), b = atomicAdd(x + 1, 0);
      __threadfence();
      after = atomicAdd(seq, 0);
    } while (before % 2 || before != after || a == 0);
    out[0] = a, out[1] = b;
  }
}
