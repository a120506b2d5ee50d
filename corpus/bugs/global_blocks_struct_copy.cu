// A structure is copied while another block stores its last byte.
struct Record {
  int a[5];
  char b[4];
};

__global__ void k(Record *x, Record *out) {
  if (blockIdx.x == 0)
    *out = *x; // want error:unordered
  else
    x->b[3] = 1; // want error:unordered
}
