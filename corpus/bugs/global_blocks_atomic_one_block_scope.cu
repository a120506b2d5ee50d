// One block's atomics have block scope, the other's the device's: one wide scope does not make up for the other.
__global__ void k(int *x) {
  if (blockIdx.x == 0)
    atomicAdd_block(x, 1); // want error:insufficient-atomic-scope
  else
    atomicAdd(x, 1); // want error:insufficient-atomic-scope
}
