// The counter is read by a plain load before the other warp has counted.
__global__ void k(int *out) {
  __shared__ int n;
  if (threadIdx.x == 0) n = 0;
  __syncthreads();
  atomicAdd(&n, 1);               // want error:atomic-mixed-with-plain
  if (threadIdx.x == 0) *out = n; // want error:atomic-mixed-with-plain
}
