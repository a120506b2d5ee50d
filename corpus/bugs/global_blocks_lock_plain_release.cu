// A lock that is given back by a plain store.
__global__ void k(int *x, int *lock) {
  if (threadIdx.x != 0) return;
  while (atomicCAS(lock, 0, 1) != 0) {} // want error:atomic-mixed-with-plain
  __threadfence();
  *x += 1; // want error:unordered
  __threadfence();
  *lock = 0; // want error:atomic-mixed-with-plain warning:same-value
}
