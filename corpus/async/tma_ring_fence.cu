// A stage is filled again by a bulk copy with no proxy fence behind the reads.
// -arch=compute_90
#include <cstdint>
#include <cstdio>

const int STAGES = 2, STEPS = 6;

__device__ uint32_t shared(const void *p) { return (uint32_t)__cvta_generic_to_shared(p); }
__device__ void init(uint64_t *b, uint32_t n) { asm volatile("mbarrier.init.shared.b64 [%0], %1;" ::"r"(shared(b)), "r"(n) : "memory"); }
__device__ void arrive(uint64_t *b) { asm volatile("mbarrier.arrive.shared.b64 _, [%0];" ::"r"(shared(b)) : "memory"); }
__device__ void wait(uint64_t *b, uint32_t parity) {
  asm volatile("{.reg .pred p; again: mbarrier.try_wait.parity.shared.b64 p, [%0], %1; @!p bra again;}" ::"r"(shared(b)), "r"(parity) : "memory");
}

__device__ void load(void *to, const void *from, uint32_t bytes, uint64_t *b) {
  asm volatile("mbarrier.arrive.expect_tx.shared.b64 _, [%0], %1;" ::"r"(shared(b)), "r"(bytes) : "memory");
  asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" // want error:missing-proxy-fence
               ::"r"(shared(to)), "l"(from), "r"(bytes), "r"(shared(b)) : "memory");
}

// Warp 0 has the stages filled, warp 1 adds them up.
__global__ void add(const int *in, int *out) {
  __shared__ alignas(128) int stage[STAGES][32];
  __shared__ uint64_t full[STAGES], empty[STAGES];
  int t = threadIdx.x, lane = t % 32, sum = 0;
  if (t < STAGES) init(&full[t], 1), init(&empty[t], 32);
  __syncthreads();
  for (int s = 0; s < STEPS; s++) {
    int i = s % STAGES, turn = s / STAGES;
    if (t == 0) {
      if (turn > 0) wait(&empty[i], (turn - 1) % 2);
      load(stage[i], in + 32 * s, sizeof(stage[i]), &full[i]);
    } else if (t >= 32) {
      wait(&full[i], turn % 2);
      sum += stage[i][lane ^ 1]; // want error:missing-proxy-fence
      arrive(&empty[i]);
    }
  }
  if (t >= 32) out[lane] = sum;
}

int main() {
  int *in, *out;
  cudaMallocManaged(&in, 32 * STEPS * sizeof(int));
  cudaMallocManaged(&out, 32 * sizeof(int));
  for (int i = 0; i < 32 * STEPS; i++) in[i] = i;
  add<<<1, 64>>>(in, out);
  cudaDeviceSynchronize();
  printf("out[1] = %d\n", out[1]);
}
