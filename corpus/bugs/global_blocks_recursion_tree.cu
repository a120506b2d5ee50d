// Both blocks walk a tree down to its leaves and add to the nodes on the way back: the root is both's.
__device__ int walk(int *x, int node) {
  if (node >= 4) return node;
  int below = node == 1 ? walk(x, 2 + blockIdx.x) : walk(x, 2 * node) + walk(x, 2 * node + 1);
  x[node] += below; // want error:unordered
  return below;
}

__global__ void k(int *x, int *out) {
  walk(x, 1);
}
