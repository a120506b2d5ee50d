// A pipeline of the block: the stage is released before it is read, so that a copy into it may come too early.
#include <cooperative_groups.h>
#include <cuda/pipeline>
#include <cstdio>

const int STEPS = 4, STAGES = 2, BLOCK = 128;

__global__ void smooth(const int *in, int *out) {
  __shared__ alignas(16) int buffer[STAGES][BLOCK];
  __shared__ cuda::pipeline_shared_state<cuda::thread_scope_block, STAGES> state;
  auto block = cooperative_groups::this_thread_block();
  auto pipe = cuda::make_pipeline(block, &state);
  int t = threadIdx.x, sum = 0;
  for (int step = 0, next = 0; step < STEPS; step++) {
    for (; next < STEPS && next < step + STAGES; next++) {
      pipe.producer_acquire();
      cuda::memcpy_async(&buffer[next % STAGES][t], &in[next * BLOCK + t], sizeof(int), pipe); // want error:stage-reuse
      pipe.producer_commit();
    }
    pipe.consumer_wait();
    pipe.consumer_release();
    sum += buffer[step % STAGES][(t + 36) % BLOCK]; // want error:stage-reuse
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
