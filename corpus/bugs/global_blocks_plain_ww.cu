// Two blocks store into the same words.
__global__ void k(int *x) {
  x[threadIdx.x] = blockIdx.x; // want error:unordered
}
