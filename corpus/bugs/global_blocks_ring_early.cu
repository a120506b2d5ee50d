// A ring of two slots whose consumer gives a slot back before it has read it.
__global__ void k(int *slot, int *head, int *tail, int *out) {
  for (int i = 0; i < 6; i++) {
    if (blockIdx.x == 0) {
      while (i - atomicAdd(tail, 0) == 2) {}
      __threadfence();
      slot[i % 2] = i; // want error:unordered
      __threadfence();
      atomicExch(head, i + 1);
    } else {
      while (atomicAdd(head, 0) == i) {}
      __threadfence();
      atomicExch(tail, i + 1);
      out[i] = slot[i % 2]; // want error:unordered
    }
  }
}
