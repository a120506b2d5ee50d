// Atomics of block scope on a word that all blocks update.
__global__ void k(int *x) {
  atomicAdd_block(x, 1); // want error:insufficient-atomic-scope
}
