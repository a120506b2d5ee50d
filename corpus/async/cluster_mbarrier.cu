// Blocks hand data to their peer by a relaxed arrival at its mbarrier, which publishes nothing.
// -arch=compute_90
#include <cooperative_groups.h>
#include <cstdint>
#include <cstdio>

namespace cg = cooperative_groups;

const int BLOCK = 32;

__device__ uint32_t shared(const void *p) { return (uint32_t)__cvta_generic_to_shared(p); }

__global__ void __cluster_dims__(2, 1, 1) exchange(const int *in, int *out) {
  __shared__ int box[BLOCK];
  __shared__ uint64_t full;
  cg::cluster_group cluster = cg::this_cluster();
  int t = threadIdx.x, peer = cluster.block_rank() ^ 1;
  uint32_t remote;
  if (t == 0) asm volatile("mbarrier.init.shared.b64 [%0], %1;" ::"r"(shared(&full)), "n"(BLOCK) : "memory");
  cluster.sync();
  cluster.map_shared_rank(box, peer)[t] = in[blockIdx.x * BLOCK + t]; // want error:missing-fence
  asm volatile("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(remote) : "r"(shared(&full)), "r"(peer));
  asm volatile("mbarrier.arrive.relaxed.cluster.shared::cluster.b64 _, [%0];" ::"r"(remote) : "memory");
  asm volatile("{.reg .pred p; again: mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 p, [%0], 0; @!p bra again;}" ::"r"(shared(&full)) : "memory");
  out[blockIdx.x * BLOCK + t] = box[BLOCK - 1 - t]; // want error:missing-fence
  cluster.sync();
}

int main() {
  int *in, *out;
  cudaMallocManaged(&in, 2 * BLOCK * sizeof(int));
  cudaMallocManaged(&out, 2 * BLOCK * sizeof(int));
  for (int i = 0; i < 2 * BLOCK; i++) in[i] = i;
  exchange<<<2, BLOCK>>>(in, out);
  cudaDeviceSynchronize();
  printf("out[1] = %d\n", out[1]);
}
