// A node is filled, and then its address is published.
__global__ void k(int *node, unsigned long long *head, int *out) {
  if (blockIdx.x == 0) {
    node[2] = 42;
    __threadfence();
    atomicExch(head, (unsigned long long)(node + 2));
  } else {
    unsigned long long p;
    while ((p = atomicAdd(head, 0ull)) == 0) {}
    __threadfence();
    *out = *(int *)p;
  }
}
