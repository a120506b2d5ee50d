// A lock whose waiters each have a word of their own.
__global__ void k(int *x, int *ticket, int *go) {
  int mine = atomicAdd(ticket, 1);
  while (mine > 0 && atomicAdd(go + mine, 0) == 0) {}
  __threadfence();
  *x += 1;
  __threadfence();
  atomicExch(go + mine + 1, 1);
}
