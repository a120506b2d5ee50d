// A bit-field that was never set decides.
struct Flags {
  unsigned seen : 3, depth : 7, kind : 11;
};

__global__ void flags(int *out, const int *in, int n) {
  Flags f;
  f.depth = n;
  out[threadIdx.x] = f.depth;
  Flags g = f;
  if (g.kind > 2 || g.depth > 90) // want error:uninitialised-read
    out[threadIdx.x] = 1;
}
