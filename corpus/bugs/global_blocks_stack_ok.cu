// A stack that all push to; who has pushed the last of them takes them off.
__global__ void k(int *next, int *value, int *head, int *out) {
  int me = blockIdx.x + 1, h = 0, depth;
  value[me] = me;
  do {
    next[me] = h;
    depth = h ? h / 8 + 1 : 1;
    __threadfence();
    int seen = atomicCAS(head, h, depth * 8 + me);
    if (seen == h) break;
    h = seen;
  } while (true);
  if (depth < 4) return;
  __threadfence();
  int sum = 0;
  for (int n = depth * 8 + me; n; n = next[n % 8]) sum += value[n % 8];
  *out = sum;
}
