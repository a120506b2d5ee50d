// The other bits of the word have no value, and need none.
struct Flags {
  unsigned seen : 3, depth : 7, kind : 11;
};

__global__ void flags(int *out, const int *in, int n) {
  Flags f;
  f.depth = n;
  f.kind = 2;
  out[threadIdx.x] = f.depth;
  Flags g = f;
  if (g.kind > 2 || g.depth > 90)
    out[threadIdx.x] = 1;
}
