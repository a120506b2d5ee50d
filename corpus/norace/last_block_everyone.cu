// Every thread fences its result, and thread 0 counts the block as done when all of them have.
#include <cstdio>

const int N = 512, BLOCK = 128, BLOCKS = N / BLOCK;

__global__ void reduce(const int *in, int *results, unsigned *done, int *out) {
  __shared__ bool last;
  int i = blockIdx.x * BLOCK + threadIdx.x;
  results[i] = in[i] * in[i];
  __threadfence();
  __syncthreads();
  if (threadIdx.x == 0) last = atomicAdd(done, 1) == gridDim.x - 1;
  __syncthreads();
  if (!last) return;
  __threadfence();
  for (int k = threadIdx.x; k < N; k += BLOCK) atomicAdd(out, results[k]);
}

int main() {
  int *in, *results, *out;
  unsigned *done;
  cudaMallocManaged(&in, N * sizeof(int));
  cudaMallocManaged(&results, N * sizeof(int));
  cudaMallocManaged(&done, sizeof(unsigned));
  cudaMallocManaged(&out, sizeof(int));
  for (int i = 0; i < N; i++) in[i] = i % 4;
  *done = *out = 0;
  reduce<<<BLOCKS, BLOCK>>>(in, results, done, out);
  cudaDeviceSynchronize();
  printf("sum %d\n", *out);
  return *out != 1792;
}
