// Nothing is between the counter's first value and the atomics on it.
__global__ void k(int *out) {
  __shared__ int n;
  if (threadIdx.x == 0) n = 0; // want error:atomic-mixed-with-plain
  atomicAdd(&n, 1);            // want error:atomic-mixed-with-plain
  __syncthreads();
  if (threadIdx.x == 0) *out = n;
}
