// A lock whose waiters each have a word of their own, and go on without a fence.
__global__ void k(int *x, int *ticket, int *go) {
  int mine = atomicAdd(ticket, 1);
  while (mine > 0 && atomicAdd(go + mine, 0) == 0) {}
  *x += 1; // want error:missing-fence
  __threadfence();
  atomicExch(go + mine + 1, 1);
}
