// Threads wait for a bulk copy together, and then meet at a barrier.
// -arch=compute_90
#include <cstdint>
#include <cstdio>

const int BLOCK = 64;

__device__ uint32_t shared(const void *p) { return (uint32_t)__cvta_generic_to_shared(p); }
__device__ void init(uint64_t *b, uint32_t n) { asm volatile("mbarrier.init.shared.b64 [%0], %1;" ::"r"(shared(b)), "r"(n) : "memory"); }
__device__ void arrive(uint64_t *b) { asm volatile("mbarrier.arrive.shared.b64 _, [%0];" ::"r"(shared(b)) : "memory"); }
__device__ void wait(uint64_t *b, uint32_t parity) {
  asm volatile("{.reg .pred p; again: mbarrier.try_wait.parity.shared.b64 p, [%0], %1; @!p bra again;}" ::"r"(shared(b)), "r"(parity) : "memory");
}
__device__ void load(void *to, const void *from, uint32_t bytes, uint64_t *b) {
  asm volatile("mbarrier.arrive.expect_tx.shared.b64 _, [%0], %1;" ::"r"(shared(b)), "r"(bytes) : "memory");
  asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];"
               ::"r"(shared(to)), "l"(from), "r"(bytes), "r"(shared(b)) : "memory");
}

__global__ void shift(const int *in, int *out) {
  __shared__ alignas(128) int tile[BLOCK], mine[BLOCK];
  __shared__ uint64_t full;
  int t = threadIdx.x;
  if (t == 0) init(&full, 1);
  __syncthreads();
  if (t == 0) load(tile, in, sizeof(tile), &full);
  mine[t] = in[BLOCK + t];
  wait(&full, 0);
  __syncthreads();
  out[t] = tile[t] + mine[(t + 32) % BLOCK];
}

int main() {
  int *in, *out;
  cudaMallocManaged(&in, 2 * BLOCK * sizeof(int));
  cudaMallocManaged(&out, BLOCK * sizeof(int));
  for (int i = 0; i < 2 * BLOCK; i++) in[i] = i;
  shift<<<1, BLOCK>>>(in, out);
  cudaDeviceSynchronize();
  printf("out[1] = %d\n", out[1]);
  return out[1] != 98;
}
