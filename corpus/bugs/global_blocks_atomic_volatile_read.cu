// A volatile load beside another block's atomic.
__global__ void k(int *x, int *out) {
  if (blockIdx.x == 0)
    atomicAdd(x, 1); // want warning:volatile
  else
    *out = *(volatile int *)x; // want warning:volatile
}
