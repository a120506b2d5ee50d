// One member of the structure has no value; its padding need not.
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
  if (n > 90)
  x.weight = n;
  x.of.i = 3;
  return x;
}

__global__ void padded(Node *out, const int *in, int n) {
  Node a = make(in[n]);
  Node b = a;
  if (threadIdx.x < 8) out[threadIdx.x] = b;
  if (b.weight > 2 && b.of.i == 3 && b.kind < 2) // want error:uninitialised-read
    if (threadIdx.x == 0) out[8].kind = 1;
}
