// The flag is in global memory, the message in shared memory, and the sender has no fence.
__global__ void k(int *flag, int *out) {
  __shared__ int data;
  if (threadIdx.x == 0) {
    data = 42; // want error:missing-fence
    atomicExch(flag, 1);
  } else if (threadIdx.x == 32) {
    while (atomicAdd(flag, 0) == 0) {}
    __threadfence();
    *out = data; // want error:missing-fence
  }
}
