// A lock that is given back by a volatile store: it hands the section's data over, and is no atomic.
__global__ void k(int *x, volatile int *lock) {
  if (threadIdx.x != 0) return;
  while (atomicCAS((int *)lock, 0, 1) != 0) {} // want warning:volatile
  __threadfence();
  *x += 1;
  __threadfence();
  *lock = 0; // want warning:volatile
}
