// Of 8192 threads that store and load their own word, one loads another block's.
__global__ void k(int *x, int *out) {
  int i = blockIdx.x * 256 + threadIdx.x, j = i;
  x[i] = i; // want error:unordered
  if (i == 4429) j = i + 300;
  out[i] = x[j]; // want error:unordered
}
