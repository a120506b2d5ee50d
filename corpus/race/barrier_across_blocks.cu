// __syncthreads orders the threads of one block; the neighbour in the next block is none of them.
#include <cstdio>

const int N = 128, BLOCK = 32;

__global__ void neighbours(const int *in, int *out) {
  int i = blockIdx.x * BLOCK + threadIdx.x;
  out[i] = 2 * in[i]; // want error:unordered
  __syncthreads();
  out[N / 2 + i] = out[(i + 1) % (N / 2)]; // want error:unordered
}

int main() {
  int *in, *out;
  cudaMallocManaged(&in, N * sizeof(int));
  cudaMallocManaged(&out, N * sizeof(int));
  for (int i = 0; i < N; i++) in[i] = i, out[i] = 0;
  neighbours<<<N / 2 / BLOCK, BLOCK>>>(in, out);
  cudaDeviceSynchronize();
  printf("out[0] = %d\n", out[0]);
}
