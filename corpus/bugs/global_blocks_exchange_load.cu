// An exchange is used as a store, and the load beside it is plain.
__global__ void k(int *x, int *out) {
  if (blockIdx.x == 0)
    atomicExch(x, 1); // want error:atomic-mixed-with-plain
  else
    *out = *x; // want error:atomic-mixed-with-plain
}
