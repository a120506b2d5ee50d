// Atomics of block scope on a word for each block.
__global__ void k(int *x) {
  atomicAdd_block(x + blockIdx.x, 1);
}
