// A sequence lock whose data are plain: a reader that is to try again has read what is being written.
__device__ int load(int *p) {
  int v;
  asm volatile("ld.relaxed.gpu.u32 %0, [%1];" : "=r"(v) : "l"(p) : "memory");
  return v;
}

__global__ void k(int *x, int *seq, int *seen, int *out) {
  if (blockIdx.x == 0) {
    while (load(seen) == 0) {} // a reader has begun
    atomicAdd(seq, 1);
    __threadfence();
    x[0] = x[1] = 7; // want error:unordered
    __threadfence();
    atomicAdd(seq, 1);
  } else {
    int before, after, a, b, tries = 0;
    do {
      before = load(seq);
      __threadfence();
      if (tries++ == 0) atomicExch(seen, 1);
      a = x[0], b = x[1]; // want error:unordered
      __threadfence();
      after = load(seq);
    } while (before % 2 || before != after || a == 0);
    out[0] = a, out[1] = b;
  }
}
