// A plain load beside another block's atomics.
__global__ void k(int *x, int *out) {
  if (blockIdx.x == 0)
    atomicAdd(x, 1); // want error:atomic-mixed-with-plain
  else if (threadIdx.x == 0)
    *out = *x; // want error:atomic-mixed-with-plain
}
