// A plain store beside another block's atomic.
__global__ void k(int *x) {
  if (blockIdx.x == 0)
    *x = 5; // want error:atomic-mixed-with-plain
  else
    atomicAdd(x, 1); // want error:atomic-mixed-with-plain
}
