// Threads arrive at a barrier in shared memory that another one initialises too late.
#include <cstdint>
#include <cstdio>

const int BLOCK = 128;

__device__ void arrive(uint32_t bar) { asm volatile("{.reg .b64 s; mbarrier.arrive.shared.b64 s, [%0];}" ::"r"(bar) : "memory"); }  // want error:mbarrier-not-initialised

// The last thread initialises the barrier after the others have arrived.
__global__ void meet(const int *in, int *out) {
  __shared__ uint64_t met;
  int t = threadIdx.x;
  uint32_t m = __cvta_generic_to_shared(&met);
  if (t < 32) arrive(m);
  __syncthreads();
  if (t == BLOCK - 1) asm volatile("mbarrier.init.shared.b64 [%0], %1;" ::"r"(m), "n"(BLOCK) : "memory");  // want error:mbarrier-not-initialised
  out[t] = in[t];
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
