// A fence orders a thread's own accesses; it does not wait for the other threads.
#include <cstdio>

const int N = 64, BLOCK = 64;

__global__ void reverse(const int *in, int *out) {
  __shared__ int tile[BLOCK];
  int t = threadIdx.x;
  tile[t] = in[t]; // want error:missing-barrier
  __threadfence_block();
  out[t] = tile[BLOCK - 1 - t]; // want error:missing-barrier
}

int main() {
  int *in, *out;
  cudaMallocManaged(&in, N * sizeof(int));
  cudaMallocManaged(&out, N * sizeof(int));
  for (int i = 0; i < N; i++) in[i] = i, out[i] = 0;
  reverse<<<N / BLOCK, BLOCK>>>(in, out);
  cudaDeviceSynchronize();
  printf("out[0] = %d\n", out[0]);
}
