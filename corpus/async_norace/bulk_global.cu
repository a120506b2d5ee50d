// The last block copies by bulk copies what all blocks have written to global memory, after a proxy fence.
// -arch=compute_90
#include <cstdint>
#include <cstdio>

const int BLOCK = 128, BLOCKS = 4;

__device__ uint32_t in_shared(const void *p) { return uint32_t(__cvta_generic_to_shared(p)); }

__device__ void wait(uint64_t *bar, int parity) {
  int done = 0;
  while (!done)
    asm volatile("{ .reg .pred p; mbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2; selp.b32 %0, 1, 0, p; }"
                 : "=r"(done) : "r"(in_shared(bar)), "r"(parity) : "memory");
}

// Bytes of global memory are copied to shared memory.
__device__ void load(void *to, const void *from, uint32_t bytes, uint64_t *bar) {
  asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(in_shared(bar)), "r"(bytes) : "memory");
  asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(in_shared(to)), "l"(from), "r"(bytes), "r"(in_shared(bar)) : "memory");
}

// Each block writes its part. The last one adds up all of them.
__global__ void sum(const int *in, int *parts, int *out, int *count) {
  __shared__ alignas(128) int tile[BLOCKS * BLOCK];
  __shared__ uint64_t full;
  __shared__ int last;
  int t = threadIdx.x;
  if (t == 0) asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(in_shared(&full)) : "memory");
  parts[blockIdx.x * BLOCK + t] = in[blockIdx.x * BLOCK + t] * 2;
  __threadfence();
  __syncthreads();
  if (t == 0) last = atomicAdd(count, 1) == BLOCKS - 1;
  __syncthreads();
  if (!last) return;
  if (t == 0) {
    __threadfence();
    asm volatile("fence.proxy.async.global;" ::: "memory");
    load(tile, parts, sizeof(tile), &full);
  }
  wait(&full, 0);
  int sum = 0;
  for (int i = 0; i < BLOCKS; i++) sum += tile[i * BLOCK + t];
  out[t] = sum;
}

int main() {
  int *in, *parts, *out, *count;
  cudaMallocManaged(&in, BLOCKS * BLOCK * sizeof(int));
  cudaMalloc(&parts, BLOCKS * BLOCK * sizeof(int));
  cudaMallocManaged(&out, BLOCK * sizeof(int));
  cudaMallocManaged(&count, sizeof(int));
  for (int i = 0; i < BLOCKS * BLOCK; i++) in[i] = i;
  *count = 0;
  sum<<<BLOCKS, BLOCK>>>(in, parts, out, count);
  cudaDeviceSynchronize();
  printf("out[1] = %d\n", out[1]);
}
