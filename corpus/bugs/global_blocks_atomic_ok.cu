// Atomics of all blocks on one word.
__global__ void k(int *x) {
  atomicAdd(x, 1);
}
