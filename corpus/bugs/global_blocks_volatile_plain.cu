// A volatile store, and a plain load by another block.
__global__ void k(int *x, int *out) {
  if (blockIdx.x == 0)
    *(volatile int *)x = 1; // want error:unordered
  else
    *out = *x; // want error:unordered
}
