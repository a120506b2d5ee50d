// Each lane overwrites what its neighbour reads in the instruction before.
__global__ void k(int *x) {
  int t = threadIdx.x;
  x[t] = x[(t + 1) % 32]; // want warning:warp-synchronous
}
