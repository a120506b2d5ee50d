// A spin lock of device scope, a fence on either side of the section.
__global__ void k(int *x, int *lock) {
  if (threadIdx.x != 0) return;
  while (atomicCAS(lock, 0, 1) != 0) {}
  __threadfence();
  *x += 1;
  __threadfence();
  atomicExch(lock, 0);
}
