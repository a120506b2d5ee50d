// Whole structures are copied through shared memory; each copy is several accesses, and nobody waits.
#include <cstdio>

const int N = 64, BLOCK = 64;

struct Point { int x, y, z; };

__global__ void mirror(const int *in, int *out) {
  __shared__ Point points[BLOCK];
  int t = threadIdx.x;
  Point p = {in[t], 2 * in[t], 3 * in[t]};
  points[t] = p; // want error:missing-barrier
  p = points[BLOCK - 1 - t]; // want error:missing-barrier
  out[t] = p.x + p.y + p.z;
}

int main() {
  int *in, *out;
  cudaMallocManaged(&in, N * sizeof(int));
  cudaMallocManaged(&out, N * sizeof(int));
  for (int i = 0; i < N; i++) in[i] = i, out[i] = 0;
  mirror<<<N / BLOCK, BLOCK>>>(in, out);
  cudaDeviceSynchronize();
  printf("out[0] = %d\n", out[0]);
}
