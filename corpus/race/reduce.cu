// Tree reduction in shared memory. The barrier is before the loop instead of inside it.
#include <cstdio>

const int N = 512, BLOCK = 128;

__global__ void reduce(const int *in, int *out) {
  __shared__ int sum[BLOCK];
  int t = threadIdx.x;
  sum[t] = in[blockIdx.x * BLOCK + t];
  __syncthreads();
  for (int half = BLOCK / 2; half > 0; half /= 2)
    if (t < half) sum[t] += sum[t + half]; // want error:missing-barrier
  if (t == 0) out[blockIdx.x] = sum[0];
}

int main() {
  int *in, *out;
  cudaMallocManaged(&in, N * sizeof(int));
  cudaMallocManaged(&out, N / BLOCK * sizeof(int));
  for (int i = 0; i < N; i++) in[i] = 1;
  reduce<<<N / BLOCK, BLOCK>>>(in, out);
  cudaDeviceSynchronize();
  printf("out[0] = %d\n", out[0]);
}
