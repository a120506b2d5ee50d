// Two arrays share the dynamic shared memory. The second starts BLOCK bytes on, not BLOCK elements.
#include <cstdio>

const int N = 128, BLOCK = 128;

__global__ void combine(const int *in, int *out) {
  extern __shared__ char memory[];
  int *a = (int *)memory, *b = (int *)(memory + BLOCK);
  int t = threadIdx.x;
  a[t] = in[t];     // want error:missing-barrier
  b[t] = 2 * in[t]; // want error:missing-barrier
  __syncthreads();
  out[t] = a[BLOCK - 1 - t] + b[BLOCK - 1 - t];
}

int main() {
  int *in, *out;
  cudaMallocManaged(&in, N * sizeof(int));
  cudaMallocManaged(&out, N * sizeof(int));
  for (int i = 0; i < N; i++) in[i] = i, out[i] = 0;
  combine<<<N / BLOCK, BLOCK, 2 * BLOCK * sizeof(int)>>>(in, out);
  cudaDeviceSynchronize();
  printf("out[0] = %d\n", out[0]);
}
