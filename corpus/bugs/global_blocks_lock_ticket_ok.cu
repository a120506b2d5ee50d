// A ticket lock.
__global__ void k(int *x, int *ticket, int *serving) {
  int mine = atomicAdd(ticket, 1);
  while (atomicAdd(serving, 0) != mine) {}
  __threadfence();
  *x += 1;
  __threadfence();
  atomicAdd(serving, 1);
}
