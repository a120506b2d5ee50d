// Both blocks of a cluster wait for their mbarriers before they read what one of them has copied to both.
// -arch=compute_90
#include <cooperative_groups.h>
#include <cstdint>
#include <cstdio>

namespace cg = cooperative_groups;

const int BLOCK = 64;

__device__ uint32_t shared(const void *p) { return (uint32_t)__cvta_generic_to_shared(p); }

__global__ void __cluster_dims__(2, 1, 1) add(const int *in, int *out) {
  __shared__ alignas(128) int tile[BLOCK];
  __shared__ uint64_t full;
  cg::cluster_group cluster = cg::this_cluster();
  int t = threadIdx.x;
  if (t == 0) asm volatile("mbarrier.init.shared.b64 [%0], 1;" ::"r"(shared(&full)) : "memory");
  cluster.sync();
  if (t == 0) asm volatile("mbarrier.arrive.expect_tx.shared.b64 _, [%0], %1;" ::"r"(shared(&full)), "n"(sizeof(tile)) : "memory");
  if (t == 0 && cluster.block_rank() == 0)
    asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster [%0], [%1], %2, [%3], %4;"
                 ::"r"(shared(tile)), "l"(in), "n"(sizeof(tile)), "r"(shared(&full)), "h"((uint16_t)3) : "memory");
  asm volatile("{.reg .pred p; again: mbarrier.try_wait.parity.shared.b64 p, [%0], 0; @!p bra again;}" ::"r"(shared(&full)) : "memory");
  cluster.sync();
  out[blockIdx.x * BLOCK + t] = tile[BLOCK - 1 - t];
  cluster.sync();
}

int main() {
  int *in, *out;
  cudaMallocManaged(&in, BLOCK * sizeof(int));
  cudaMallocManaged(&out, 2 * BLOCK * sizeof(int));
  for (int i = 0; i < BLOCK; i++) in[i] = i;
  add<<<2, BLOCK>>>(in, out);
  cudaDeviceSynchronize();
  printf("out[1] = %d\n", out[1]);
  for (int i = 0; i < 2 * BLOCK; i++)
    if (out[i] != BLOCK - 1 - i % BLOCK) return 1;
}
