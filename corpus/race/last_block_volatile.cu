// The programming guide's version: a fence before counting, and volatile in place of the reader's fence.
#include <cstdio>

const int N = 512, BLOCK = 128, BLOCKS = N / BLOCK;

__global__ void reduce(const int *in, volatile int *partial, unsigned *done, int *out) {
  __shared__ int sum;
  __shared__ bool last;
  if (threadIdx.x == 0) sum = 0;
  __syncthreads();
  atomicAdd(&sum, in[blockIdx.x * BLOCK + threadIdx.x]);
  __syncthreads();
  if (threadIdx.x == 0) {
    partial[blockIdx.x] = sum; // want error:missing-fence
    __threadfence();
    last = atomicInc(done, gridDim.x - 1) == gridDim.x - 1;
  }
  __syncthreads();
  if (last && threadIdx.x < BLOCKS) atomicAdd(out, partial[threadIdx.x]); // want error:missing-fence
}

int main() {
  int *in, *partial, *out;
  unsigned *done;
  cudaMallocManaged(&in, N * sizeof(int));
  cudaMallocManaged(&partial, BLOCKS * sizeof(int));
  cudaMallocManaged(&done, sizeof(unsigned));
  cudaMallocManaged(&out, sizeof(int));
  for (int i = 0; i < N; i++) in[i] = i;
  *done = *out = 0;
  reduce<<<BLOCKS, BLOCK>>>(in, partial, done, out);
  cudaDeviceSynchronize();
  printf("sum %d\n", *out);
}
