// Each block reads what the other one stores.
__global__ void k(int *x, int *out) {
  int i = blockIdx.x * 32 + threadIdx.x;
  x[i] = i;           // want error:unordered
  out[i] = x[63 - i]; // want error:unordered
}
