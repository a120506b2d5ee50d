// A compare-and-swap that fails still reads what another block stores.
__global__ void k(int *x, int *out) {
  if (blockIdx.x == 0)
    *out = atomicCAS(x, 5, 6); // want error:atomic-mixed-with-plain
  else
    *x = 4; // want error:atomic-mixed-with-plain
}
