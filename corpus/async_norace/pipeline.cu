// A pipeline of one thread each: the barrier before the release says that all threads have read the stage.
#include <cuda/pipeline>
#include <cstdio>

const int STEPS = 4, BLOCK = 128;

__global__ void smooth(const int *in, int *out) {
  __shared__ int buffer[2][BLOCK];
  auto pipe = cuda::make_pipeline();
  int t = threadIdx.x, sum = 0;
  for (int step = -1; step < STEPS; step++) {
    if (step + 1 < STEPS) {
      pipe.producer_acquire();
      cuda::memcpy_async(&buffer[(step + 1) % 2][t], &in[(step + 1) * BLOCK + t], sizeof(int), pipe);
      pipe.producer_commit();
    }
    if (step < 0) continue;
    if (step + 1 < STEPS) cuda::pipeline_consumer_wait_prior<1>(pipe);
    else cuda::pipeline_consumer_wait_prior<0>(pipe);
    __syncthreads();
    sum += buffer[step % 2][(t + 32) % BLOCK];
    __syncthreads();
    pipe.consumer_release();
  }
  out[t] = sum;
}

int main() {
  int *in, *out;
  cudaMallocManaged(&in, STEPS * BLOCK * sizeof(int));
  cudaMallocManaged(&out, BLOCK * sizeof(int));
  for (int i = 0; i < STEPS * BLOCK; i++) in[i] = i;
  smooth<<<1, BLOCK>>>(in, out);
  cudaDeviceSynchronize();
  printf("out[0] = %d\n", out[0]);
}
