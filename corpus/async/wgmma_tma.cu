// A stage is said to be free before the warpgroup has waited for the matrix operation that reads it.
// -arch=compute_90a
#include <cstdint>
#include <cstdio>

const int STAGES = 2, STEPS = 4, TILE = 64 * 16;

__device__ uint32_t shared(const void *p) { return (uint32_t)__cvta_generic_to_shared(p); }
__device__ void init(uint64_t *b, uint32_t n) { asm volatile("mbarrier.init.shared.b64 [%0], %1;" ::"r"(shared(b)), "r"(n) : "memory"); }
__device__ void arrive(uint64_t *b) { asm volatile("mbarrier.arrive.shared.b64 _, [%0];" ::"r"(shared(b)) : "memory"); }
__device__ void wait(uint64_t *b, uint32_t parity) {
  asm volatile("{.reg .pred p; again: mbarrier.try_wait.parity.shared.b64 p, [%0], %1; @!p bra again;}" ::"r"(shared(b)), "r"(parity) : "memory");
}
__device__ void load(void *to, const void *from, uint32_t bytes, uint64_t *b) {
  asm volatile("mbarrier.arrive.expect_tx.shared.b64 _, [%0], %1;" ::"r"(shared(b)), "r"(bytes) : "memory");
  asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" // want error:stage-reuse
               ::"r"(shared(to)), "l"(from), "r"(bytes), "r"(shared(b)) : "memory");
}

// Matrices without swizzle: pieces of 8 rows of 16 bytes, those along K 128 bytes apart, those along M or N 256.
__device__ uint64_t matrix(const void *at) { return (uint64_t)(shared(at) >> 4) | 8ull << 16 | 16ull << 32; }

// Warps 0 to 3 multiply what warp 4 has fetched: matrices of ones, as they come from memory, with a matrix of ones.
__global__ void product(const uint16_t *in, float *out) {
  __shared__ alignas(128) uint16_t a[STAGES][TILE], b[8 * 16];
  __shared__ uint64_t full[STAGES], empty[STAGES];
  int t = threadIdx.x;
  float d[4] = {0, 0, 0, 0};
  if (t < STAGES) init(&full[t], 1), init(&empty[t], 128);
  if (t < 128) b[t] = 0x3c00;
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
  __syncthreads();
  for (int s = 0; s < STEPS; s++) {
    int i = s % STAGES, turn = s / STAGES;
    if (t == 128) {
      if (turn > 0) wait(&empty[i], (turn - 1) % 2);
      load(a[i], in + s * TILE, sizeof(a[i]), &full[i]);
    } else if (t < 128) {
      wait(&full[i], turn % 2);
      asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
      asm volatile("wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%0, %1, %2, %3}, %4, %5, 1, 1, 1, 0, 0;" // want error:stage-reuse
                   : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]) : "l"(matrix(a[i])), "l"(matrix(b)) : "memory");
      asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
      arrive(&empty[i]);
    }
  }
  if (t < 128) asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory");
  if (t < 128) out[t] = d[0] + d[1];
}

int main() {
  uint16_t *in;
  float *out;
  cudaMallocManaged(&in, STEPS * TILE * sizeof(uint16_t));
  cudaMallocManaged(&out, 128 * sizeof(float));
  for (int i = 0; i < STEPS * TILE; i++) in[i] = 0x3c00;
  product<<<1, 160>>>(in, out);
  cudaDeviceSynchronize();
  printf("out[1] = %g\n", out[1]);
}
