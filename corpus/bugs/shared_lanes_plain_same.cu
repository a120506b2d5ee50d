// Every lane stores the same value into one word of shared memory.
__global__ void k(int *out) {
  __shared__ int found;
  found = 1; // want warning:same-value
  __syncwarp();
  if (threadIdx.x == 0) *out = found;
}
