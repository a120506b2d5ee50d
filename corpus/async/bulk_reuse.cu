// A bulk copy overwrites a buffer while other warps may still read it.
// -arch=compute_90
#include <cstdint>
#include <cstdio>

const int BLOCK = 128;

// Lane 0 of warp 0 has bytes copied to shared memory; the mbarrier's phase is complete when they are.
__device__ void load(uint32_t to, const void *from, uint32_t bytes, uint32_t bar) {
  asm volatile("mbarrier.arrive.expect_tx.shared.b64 _, [%0], %1;" ::"r"(bar), "r"(bytes) : "memory");
  asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(to), "l"(from), "r"(bytes), "r"(bar) : "memory");  // want error:stage-reuse
}

__device__ void wait(uint32_t bar, uint32_t parity) {
  asm volatile("{.reg .pred p; again: mbarrier.try_wait.parity.shared.b64 p, [%0], %1; @!p bra again;}" ::"r"(bar), "r"(parity) : "memory");
}

__global__ void fetch(const int *in, int *out) {
  __shared__ alignas(128) int tile[BLOCK];
  __shared__ uint64_t bar[2]; // of each turn
  int t = threadIdx.x, sum = 0;
  uint32_t b = __cvta_generic_to_shared(bar);
  if (t < 2) asm volatile("mbarrier.init.shared.b64 [%0], 1;" ::"r"(b + 8 * t) : "memory");
  __syncthreads();
  for (int i = 0; i < 2; i++) {
    if (t == 0) load(__cvta_generic_to_shared(tile), in + i * BLOCK, sizeof(tile), b + 8 * i);
    wait(b + 8 * i, 0);
    sum += tile[(t + 32) % BLOCK];  // want error:stage-reuse
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
    __syncwarp();
  }
  out[t] = sum;
}

int main() {
  int *in, *out;
  cudaMallocManaged(&in, 2 * BLOCK * sizeof(int));
  cudaMallocManaged(&out, 2 * BLOCK * sizeof(int));
  for (int i = 0; i < 2 * BLOCK; i++) in[i] = i;
  fetch<<<1, BLOCK>>>(in, out);
  cudaDeviceSynchronize();
  printf("out[1] = %d\n", out[1]);
}
