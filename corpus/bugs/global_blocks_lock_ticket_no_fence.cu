// A ticket lock that is given back without a fence.
__global__ void k(int *x, int *ticket, int *serving) {
  int mine = atomicAdd(ticket, 1);
  while (atomicAdd(serving, 0) != mine) {}
  __threadfence();
  *x += 1; // want error:missing-fence
  atomicAdd(serving, 1);
}
