// Tree reduction in shared memory with a barrier before every level.
#include <cstdio>

const int N = 512, BLOCK = 128;

__global__ void reduce(const int *in, int *out) {
  __shared__ int sum[BLOCK];
  int t = threadIdx.x;
  sum[t] = in[blockIdx.x * BLOCK + t];
  for (int half = BLOCK / 2; half > 0; half /= 2) {
    __syncthreads();
    if (t < half) sum[t] += sum[t + half];
  }
  if (t == 0) atomicAdd(out, sum[0]);
}

int main() {
  int *in, *out;
  cudaMallocManaged(&in, N * sizeof(int));
  cudaMallocManaged(&out, sizeof(int));
  for (int i = 0; i < N; i++) in[i] = i;
  *out = 0;
  reduce<<<N / BLOCK, BLOCK>>>(in, out);
  cudaDeviceSynchronize();
  printf("sum %d\n", *out);
  return *out != N * (N - 1) / 2;
}
