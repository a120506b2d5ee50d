// A ring of two slots between a producer and a consumer.
__global__ void k(int *slot, int *head, int *tail, int *out) {
  for (int i = 0; i < 6; i++) {
    if (blockIdx.x == 0) {
      while (i - atomicAdd(tail, 0) == 2) {}
      __threadfence();
      slot[i % 2] = i;
      __threadfence();
      atomicExch(head, i + 1);
    } else {
      while (atomicAdd(head, 0) == i) {}
      __threadfence();
      out[i] = slot[i % 2];
      __threadfence();
      atomicExch(tail, i + 1);
    }
  }
}
