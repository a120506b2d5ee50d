// Every lane of a warp stores a value of its own into one word: which one stays is not defined.
__global__ void k(int *x) {
  *x = threadIdx.x; // want error:unordered
}
