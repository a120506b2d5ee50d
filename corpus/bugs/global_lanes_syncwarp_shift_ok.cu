// Each lane overwrites what its neighbour has read before __syncwarp().
__global__ void k(int *x) {
  int t = threadIdx.x;
  int v = x[(t + 1) % 32];
  __syncwarp();
  x[t] = v;
}
