// Nodes go to and fro between a free list under a lock and their users, who work on them without it.
__global__ void k(int *node, int *free, int *lock, int *out) {
  int mine = -1;
  while (mine < 0) {
    while (atomicCAS(lock, 0, 1) != 0) {}
    __threadfence();
    if (*free > 0) mine = --*free;
    __threadfence();
    atomicExch(lock, 0);
  }
  node[mine] = blockIdx.x + 1;
  out[blockIdx.x] = node[mine] == blockIdx.x + 1;
  while (true) { // nodes go back in the order in which they were taken
    while (atomicCAS(lock, 0, 1) != 0) {}
    __threadfence();
    bool back = *free == mine;
    if (back) ++*free;
    __threadfence();
    atomicExch(lock, 0);
    if (back) break;
  }
}
