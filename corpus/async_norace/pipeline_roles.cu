// A pipeline of producing and consuming warps: the consumers release a stage when they have read it.
// -arch=compute_80
#include <cooperative_groups.h>
#include <cuda/pipeline>
#include <cstdint>
#include <cstdio>

const int STEPS = 5, STAGES = 2, HALF = 64;

__global__ void reverse(const int *in, int *out) {
  __shared__ alignas(16) int stage[STAGES][HALF];
  __shared__ cuda::pipeline_shared_state<cuda::thread_scope_block, STAGES> state;
  auto block = cooperative_groups::this_thread_block();
  bool produces = threadIdx.x < HALF;
  int t = threadIdx.x % HALF, sum = 0;
  auto pipe = cuda::make_pipeline(block, &state, produces ? cuda::pipeline_role::producer : cuda::pipeline_role::consumer);
  for (int step = 0; step < STEPS; step++) {
    if (produces) {
      pipe.producer_acquire();
      cuda::memcpy_async(&stage[step % STAGES][t], &in[step * HALF + t], sizeof(int), pipe);
      pipe.producer_commit();
    } else {
      pipe.consumer_wait();
      sum += stage[step % STAGES][HALF - 1 - t];
      pipe.consumer_release();
    }
  }
  if (!produces) out[t] = sum;
}

int main() {
  int *in, *out;
  cudaMallocManaged(&in, STEPS * HALF * sizeof(int));
  cudaMallocManaged(&out, HALF * sizeof(int));
  for (int i = 0; i < STEPS * HALF; i++) in[i] = i;
  reverse<<<1, 2 * HALF>>>(in, out);
  cudaDeviceSynchronize();
  printf("out[1] = %d\n", out[1]);
  return out[1] != 950;
}
