// A barrier of the grid that turns its sense round, used twice a round.
__device__ void barrier(int *arrived, int *sense, int &mine) {
  mine = 1 - mine;
  __syncthreads();
  if (threadIdx.x == 0) {
    __threadfence();
    if (atomicAdd(arrived, 1) == 1) {
      atomicExch(arrived, 0);
      __threadfence();
      atomicExch(sense, mine);
    } else {
      while (atomicAdd(sense, 0) != mine) {}
    }
    __threadfence();
  }
  __syncthreads();
}

__global__ void k(int *x, int *arrived, int *sense, int *out) {
  int i = blockIdx.x * 32 + threadIdx.x, mine = 0, sum = 0;
  for (int round = 0; round < 3; round++) {
    x[i] = i;
    barrier(arrived, sense, mine);
    sum += i + x[63 - i];
    barrier(arrived, sense, mine);
  }
  out[i] = sum;
}
