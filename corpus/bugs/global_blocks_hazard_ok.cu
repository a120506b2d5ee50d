// A reader announces the node that it uses; the other block overwrites a node when it is announced no more.
__global__ void k(int *node, int *head, int *hazard, int *out) {
  if (blockIdx.x == 0) {
    int h = atomicAdd(head, 0), again;
    for (;; h = again) {
      atomicExch(hazard, h);
      __threadfence();
      if ((again = atomicAdd(head, 0)) == h) break;
    }
    __threadfence();
    *out = node[h];
    __threadfence();
    atomicExch(hazard, -1);
  } else {
    node[1] = 5;
    __threadfence();
    atomicExch(head, 1);
    __threadfence();
    while (atomicAdd(hazard, 0) == 0) {}
    __threadfence();
    node[0] = 9;
  }
}
