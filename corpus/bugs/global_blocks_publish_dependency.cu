// A node is filled, and its address published. That the reader needs the address first is no order.
__global__ void k(int *node, unsigned long long *head, int *out) {
  if (blockIdx.x == 0) {
    node[2] = 42; // want error:missing-fence
    __threadfence();
    atomicExch(head, (unsigned long long)(node + 2));
  } else {
    unsigned long long p;
    while ((p = atomicAdd(head, 0ull)) == 0) {}
    *out = *(int *)p; // want error:missing-fence
  }
}
