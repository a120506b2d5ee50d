// A message between warps of a block in shared memory, and no fences.
__global__ void k(int *out) {
  __shared__ int data, flag;
  if (threadIdx.x == 0) flag = 0;
  __syncthreads();
  if (threadIdx.x == 0) {
    data = 42; // want error:missing-fence
    atomicExch(&flag, 1);
  } else if (threadIdx.x == 32) {
    while (atomicAdd(&flag, 0) == 0) {}
    *out = data; // want error:missing-fence
  }
}
