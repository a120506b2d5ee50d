// An mbarrier counts all threads of the block, and one lane of each warp arrives for its warp.
// -arch=compute_90
#include <cstdint>
#include <cstdio>

const int BLOCK = 64;

__device__ uint32_t shared(const void *p) { return (uint32_t)__cvta_generic_to_shared(p); }

__global__ void reverse(const int *in, int *out) {
  __shared__ int tile[BLOCK];
  __shared__ uint64_t full;
  int t = threadIdx.x;
  if (t == 0) asm volatile("mbarrier.init.shared.b64 [%0], %1;" ::"r"(shared(&full)), "n"(BLOCK) : "memory");
  __syncthreads();
  tile[t] = in[t];
  if (t % 32 == 0) asm volatile("mbarrier.arrive.shared.b64 _, [%0];" ::"r"(shared(&full)) : "memory");
  asm volatile("{.reg .pred p; again: mbarrier.try_wait.parity.shared.b64 p, [%0], 0; @!p bra again;}" ::"r"(shared(&full)) : "memory"); // want error:deadlock
  out[t] = tile[BLOCK - 1 - t];
}

int main() {
  int *in, *out;
  cudaMallocManaged(&in, BLOCK * sizeof(int));
  cudaMallocManaged(&out, BLOCK * sizeof(int));
  for (int i = 0; i < BLOCK; i++) in[i] = i;
  reverse<<<1, BLOCK>>>(in, out);
  printf("%s\n", cudaGetErrorString(cudaDeviceSynchronize()));
}
