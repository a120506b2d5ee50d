// A barrier of the grid that turns its sense round, used once a round: the next round's stores meet this one's loads.
__device__ int load(int *p) {
  int v;
  asm volatile("ld.relaxed.gpu.u32 %0, [%1];" : "=r"(v) : "l"(p) : "memory");
  return v;
}

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
      while (load(sense) != mine) {}
    }
    __threadfence();
  }
  __syncthreads();
}

__global__ void k(int *x, int *arrived, int *sense, int *out) {
  int i = blockIdx.x * 32 + threadIdx.x, mine = 0, sum = 0;
  for (int round = 0; round < 3; round++) {
    x[i] = i; // want error:unordered
    barrier(arrived, sense, mine);
    sum += x[63 - i]; // want error:unordered
  }
  out[i] = sum;
}
