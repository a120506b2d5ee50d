// Producing threads let an mbarrier track the copies that they have issued.
// -arch=compute_80
#include <cstdint>
#include <cstdio>

const int HALF = 64;

__device__ uint32_t shared(const void *p) { return (uint32_t)__cvta_generic_to_shared(p); }
__device__ void track(uint64_t *b) { asm volatile("cp.async.mbarrier.arrive.noinc.shared.b64 [%0];" ::"r"(shared(b)) : "memory"); }
__device__ void wait(uint64_t *b, uint32_t parity) {
  asm volatile("{.reg .pred p; again: mbarrier.test_wait.parity.shared.b64 p, [%0], %1; @!p bra again;}" ::"r"(shared(b)), "r"(parity) : "memory");
}

// The first two warps copy, the others read.
__global__ void reverse(const int *in, int *out) {
  __shared__ alignas(16) int tile[HALF];
  __shared__ uint64_t full;
  int t = threadIdx.x % HALF;
  if (threadIdx.x == 0) asm volatile("mbarrier.init.shared.b64 [%0], %1;" ::"r"(shared(&full)), "n"(HALF) : "memory");
  __syncthreads();
  if (threadIdx.x < HALF) {
    asm volatile("cp.async.ca.shared.global [%0], [%1], 4;" ::"r"(shared(&tile[t])), "l"(&in[t]) : "memory");
    track(&full);
  }
  __syncthreads();
  if (threadIdx.x >= HALF) {
    wait(&full, 0);
    out[t] = tile[HALF - 1 - t];
  }
}

int main() {
  int *in, *out;
  cudaMallocManaged(&in, HALF * sizeof(int));
  cudaMallocManaged(&out, HALF * sizeof(int));
  for (int i = 0; i < HALF; i++) in[i] = i;
  reverse<<<1, 2 * HALF>>>(in, out);
  cudaDeviceSynchronize();
  printf("out[1] = %d\n", out[1]);
  return out[1] != 62;
}
