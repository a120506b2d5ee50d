// A load through the read-only cache, of what another block stores.
__global__ void k(int *x, int *out) {
  if (blockIdx.x == 0)
    x[threadIdx.x] = 1; // want error:unordered error:read-only-load
  else
    out[threadIdx.x] = __ldg(x + threadIdx.x); // want error:unordered error:read-only-load
}
