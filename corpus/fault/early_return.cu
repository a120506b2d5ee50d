// Threads without work return before the barrier the others wait at. Hardware lets the rest go on once they have
// left; the programming guide forbids it.
#include <cstdio>

const int N = 100, BLOCK = 128;

__global__ void reverse(const int *in, int *out, int n) {
  __shared__ int tile[BLOCK];
  int t = threadIdx.x;
  if (t >= n) return;
  tile[t] = in[t];
  __syncthreads(); // want warning:barrier-divergence
  out[t] = tile[n - 1 - t];
}

int main() {
  int *in, *out;
  cudaMallocManaged(&in, N * sizeof(int));
  cudaMallocManaged(&out, N * sizeof(int));
  for (int i = 0; i < N; i++) in[i] = i;
  reverse<<<1, BLOCK>>>(in, out, N);
  cudaDeviceSynchronize();
  printf("out[0] = %d\n", out[0]);
}
