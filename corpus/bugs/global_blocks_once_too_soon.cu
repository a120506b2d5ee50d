// The others do not wait until the first block has initialised the word, but until it has begun.
__global__ void k(int *x, int *state, int *begun, int *out) {
  if (atomicCAS(state, 0, 1) == 0) {
    while (atomicAdd(begun, 0) != 3) {} // let them come
    *x = 42; // want error:unordered
    __threadfence();
    atomicExch(state, 2);
  } else {
    atomicAdd(begun, 1);
    __threadfence();
    out[blockIdx.x] = *x; // want error:unordered
  }
}
