// Every member has a value. The padding, which is copied too, has none, and neither has the member of the union that is not in use.
struct Node {
  char kind;
  double weight;
  union {
    int i;
    char c[8];
  } of;
};

__device__ Node make(int n) {
  Node x;
  x.kind = n & 1;
  x.weight = n;
  x.of.i = 3;
  return x;
}

__global__ void padded(Node *out, const int *in, int n) {
  Node a = make(in[n]);
  Node b = a;
  if (threadIdx.x < 8) out[threadIdx.x] = b;
  if (b.weight > 2 && b.of.i == 3 && b.kind < 2)
    if (threadIdx.x == 0) out[8].kind = 1;
}
