// Atomics of device scope and of system scope: either scope takes in the other block.
__global__ void k(int *x) {
  if (blockIdx.x == 0)
    atomicAdd_system(x, 1);
  else
    atomicAdd(x, 1);
}
