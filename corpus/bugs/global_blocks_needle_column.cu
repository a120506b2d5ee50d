// Each block stores a column of a matrix; one thread misses its own by one.
__global__ void k(int *x) {
  int column = blockIdx.x, row = threadIdx.x;
  x[64 * row + column] = row; // want error:unordered
  if (column == 3 && row == 9) x[64 * row + column + 1] = -1; // want error:unordered
}
