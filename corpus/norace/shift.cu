// Every thread takes its right neighbour's value, in place, with a barrier between all reads and all writes.
#include <cstdio>

const int N = 128, BLOCK = 128;

__global__ void shift(const int *in, int *out) {
  __shared__ int a[BLOCK + 1];
  int t = threadIdx.x;
  a[t] = in[t];
  if (t == 0) a[BLOCK] = 0;
  __syncthreads();
  int right = a[t + 1];
  __syncthreads();
  a[t] = right;
  __syncthreads();
  out[t] = a[t];
}

int main() {
  int *in, *out;
  cudaMallocManaged(&in, N * sizeof(int));
  cudaMallocManaged(&out, N * sizeof(int));
  for (int i = 0; i < N; i++) in[i] = i, out[i] = 0;
  shift<<<N / BLOCK, BLOCK>>>(in, out);
  cudaDeviceSynchronize();
  int wrong = 0;
  for (int i = 0; i < N; i++) wrong += out[i] != (i + 1) % N;
  printf("%d wrong\n", wrong);
  return wrong != 0;
}
