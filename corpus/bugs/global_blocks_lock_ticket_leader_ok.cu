// One thread takes a ticket lock for its block, with barriers around the steps of the critical section.
__global__ void k(int *x, int *ticket, int *serving) {
  int t = threadIdx.x;
  if (t == 0) {
    int mine = atomicAdd(ticket, 1);
    while (atomicAdd(serving, 0) != mine) {}
    __threadfence();
  }
  __syncthreads();
  x[t] += 1;
  __syncthreads();
  if (t == 0) {
    __threadfence();
    atomicAdd(serving, 1);
  }
}
