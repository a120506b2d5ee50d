// Both paths of a branch update one word by atomics.
__global__ void k(int *out) {
  __shared__ int s;
  if (threadIdx.x == 0) s = 0;
  __syncwarp();
  if (threadIdx.x % 2)
    atomicAdd(&s, 1);
  else
    atomicAdd(&s, 3);
  __syncwarp();
  if (threadIdx.x == 0) *out = s;
}
