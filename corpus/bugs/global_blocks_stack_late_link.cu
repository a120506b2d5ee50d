// A stack whose nodes are linked when they are on it already.
__global__ void k(int *next, int *value, int *head, int *out) {
  int me = blockIdx.x + 1, h = 0, depth;
  value[me] = me;
  __threadfence();
  while (true) {
    depth = h ? h / 8 + 1 : 1;
    int seen = atomicCAS(head, h, depth * 8 + me);
    if (seen == h) break;
    h = seen;
  }
  next[me] = h; // want error:unordered
  if (depth < 4) return;
  __threadfence();
  int sum = 0;
  for (int n = depth * 8 + me; n; n = next[n % 8]) sum += value[n % 8]; // want error:unordered
  *out = sum;
}
