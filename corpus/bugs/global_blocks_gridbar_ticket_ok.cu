// A barrier of the grid whose counter only grows.
__device__ void barrier(int *ticket) {
  __syncthreads();
  if (threadIdx.x == 0) {
    __threadfence();
    int until = (atomicAdd(ticket, 1) / 2 + 1) * 2;
    while (atomicAdd(ticket, 0) < until) {}
    __threadfence();
  }
  __syncthreads();
}

__global__ void k(int *x, int *ticket, int *out) {
  int i = blockIdx.x * 32 + threadIdx.x, sum = 0;
  for (int round = 0; round < 3; round++) {
    x[i] = i;
    barrier(ticket);
    sum += i + x[63 - i];
    barrier(ticket);
  }
  out[i] = sum;
}
