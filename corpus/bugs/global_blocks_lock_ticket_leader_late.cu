// One thread takes a ticket lock for its block, and gives it back while other threads may be in the critical section.
__global__ void k(int *x, int *ticket, int *serving) {
  int t = threadIdx.x;
  if (t == 0) {
    int mine = atomicAdd(ticket, 1);
    while (atomicAdd(serving, 0) != mine) {}
    __threadfence();
  }
  __syncthreads();
  x[t] += 1; // want error:missing-barrier
  if (t == 0) {
    __threadfence();
    atomicAdd(serving, 1);
  }
}
