// A thread invalidates a barrier in shared memory while others may still wait for it.
#include <cstdint>
#include <cstdio>

const int BLOCK = 128;

__device__ void wait(uint32_t bar, uint32_t parity) {
  asm volatile("{.reg .pred p; again: mbarrier.test_wait.parity.shared.b64 p, [%0], %1; @!p bra again;}" ::"r"(bar), "r"(parity) : "memory");  // want error:mbarrier-invalidated
}

__device__ void arrive(uint32_t bar) { asm volatile("{.reg .b64 s; mbarrier.arrive.shared.b64 s, [%0];}" ::"r"(bar) : "memory"); }

// All warps but the first one compute for long before they wait.
__global__ void meet(const int *in, int *out) {
  __shared__ uint64_t met;
  int t = threadIdx.x, x = in[t];
  uint32_t m = __cvta_generic_to_shared(&met);
  if (t == 0) asm volatile("mbarrier.init.shared.b64 [%0], %1;" ::"r"(m), "n"(BLOCK) : "memory");
  __syncthreads();
  arrive(m);
  for (int i = 0; t >= 32 && i < 2000; i++) x = x * 5 + 1;
  wait(m, 0);
  __syncwarp();
  if (t == 0) asm volatile("mbarrier.inval.shared.b64 [%0];" ::"r"(m) : "memory");  // want error:mbarrier-invalidated
  out[t] = x;
}

int main() {
  int *in, *out;
  cudaMallocManaged(&in, BLOCK * sizeof(int));
  cudaMallocManaged(&out, BLOCK * sizeof(int));
  for (int i = 0; i < BLOCK; i++) in[i] = i;
  meet<<<1, BLOCK>>>(in, out);
  cudaDeviceSynchronize();
  printf("out[1] = %d\n", out[1]);
}
