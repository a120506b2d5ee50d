// Lanes past the end add what their register holds.
__global__ void reduce(int *out, const int *in, int n) {
  int v;
  if (threadIdx.x < n) v = in[threadIdx.x];
  for (int d = 16; d > 0; d /= 2)
    v += __shfl_down_sync(~0u, v, d);
  if (threadIdx.x == 0) out[0] = v; // want error:uninitialised-read
  int u;
  if (threadIdx.x < n) u = in[threadIdx.x];
  int before = __shfl_up_sync(~0u, u, 1);
  if (threadIdx.x > 0 && threadIdx.x < n) out[threadIdx.x] = u + before;
}
