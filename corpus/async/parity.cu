// Consumers wait with the same parity in each step, so that the second wait finds the phase before, which is complete.
#include <cstdint>
#include <cstdio>

const int BLOCK = 128, STEPS = 2;

__device__ void wait(uint32_t bar, uint32_t parity) {
  asm volatile("{.reg .pred p; again: mbarrier.test_wait.parity.shared.b64 p, [%0], %1; @!p bra again;}" ::"r"(bar), "r"(parity) : "memory");
}

__device__ void arrive(uint32_t bar) { asm volatile("{.reg .b64 s; mbarrier.arrive.shared.b64 s, [%0];}" ::"r"(bar) : "memory"); }

// Warp 0 computes for long what the others read; a phase of the barrier is a step.
__global__ void stream(const int *in, int *out) {
  __shared__ int buffer[STEPS][32];
  __shared__ uint64_t full;
  int t = threadIdx.x, lane = t % 32, sum = 0;
  uint32_t f = __cvta_generic_to_shared(&full);
  if (t == 0) asm volatile("mbarrier.init.shared.b64 [%0], 32;" ::"r"(f) : "memory");
  __syncthreads();
  for (int step = 0; step < STEPS; step++) {
    if (t < 32) {
      int x = in[step * 32 + lane];
      for (int i = 0; i < 2000; i++) x = x * 5 + 1;
      buffer[step][lane] = x;  // want error:missing-barrier
      if (step == 0) arrive(f);  // were the second phase completed too, late consumers would wait for a third for ever
    } else {
      wait(f, 0);
      sum += buffer[step][lane ^ 1];  // want error:missing-barrier
    }
    if (step == 0) __syncthreads();
  }
  out[t] = sum;
}

int main() {
  int *in, *out;
  cudaMallocManaged(&in, STEPS * 32 * sizeof(int));
  cudaMallocManaged(&out, BLOCK * sizeof(int));
  for (int i = 0; i < STEPS * 32; i++) in[i] = i;
  stream<<<1, BLOCK>>>(in, out);
  cudaDeviceSynchronize();
  printf("out[32] = %d\n", out[32]);
}
