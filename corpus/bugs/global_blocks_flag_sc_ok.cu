// A message with fence.sc on both sides.
__global__ void k(int *data, int *flag, int *out) {
  if (blockIdx.x == 0) {
    *data = 42;
    asm volatile("fence.sc.gpu;" ::: "memory");
    atomicExch(flag, 1);
  } else {
    while (atomicAdd(flag, 0) == 0) {}
    asm volatile("fence.sc.gpu;" ::: "memory");
    *out = *data;
  }
}
