// Consumers say that the buffer is free before they have read it.
#include <cstdint>
#include <cstdio>

const int BLOCK = 128, STEPS = 4;

__device__ void wait(uint32_t bar, uint32_t parity) {
  asm volatile("{.reg .pred p; again: mbarrier.test_wait.parity.shared.b64 p, [%0], %1; @!p bra again;}" ::"r"(bar), "r"(parity) : "memory");
}

__device__ void arrive(uint32_t bar) { asm volatile("{.reg .b64 s; mbarrier.arrive.shared.b64 s, [%0];}" ::"r"(bar) : "memory"); }

// Warp 0 fills the buffer, the others read it: one barrier says that it is full, the other that it is free.
__global__ void stream(const int *in, int *out) {
  __shared__ int buffer[32];
  __shared__ uint64_t full, free;
  int t = threadIdx.x, lane = t % 32, sum = 0;
  uint32_t f = __cvta_generic_to_shared(&full), e = __cvta_generic_to_shared(&free);
  if (t == 0) asm volatile("mbarrier.init.shared.b64 [%0], 32; mbarrier.init.shared.b64 [%1], 96;" ::"r"(f), "r"(e) : "memory");
  __syncthreads();
  for (int step = 0; step < STEPS; step++) {
    if (t < 32) {
      wait(e, step % 2 ^ 1);
      buffer[lane] = in[step * BLOCK + lane]; // want error:missing-barrier
      arrive(f);
    } else {
      wait(f, step % 2);
      arrive(e);
      sum += buffer[lane ^ 1]; // want error:missing-barrier
    }
  }
  out[t] = sum;
}

int main() {
  int *in, *out;
  cudaMallocManaged(&in, STEPS * BLOCK * sizeof(int));
  cudaMallocManaged(&out, BLOCK * sizeof(int));
  for (int i = 0; i < STEPS * BLOCK; i++) in[i] = i;
  stream<<<1, BLOCK>>>(in, out);
  cudaDeviceSynchronize();
  printf("out[32] = %d\n", out[32]);
}
