// A block reads what its peer stores by st.async, and neither waits for its mbarrier nor has the cluster met.
// -arch=compute_90
#include <cooperative_groups.h>
#include <cstdint>
#include <cstdio>

namespace cg = cooperative_groups;

const int BLOCK = 32;

__device__ uint32_t shared(const void *p) { return (uint32_t)__cvta_generic_to_shared(p); }

__device__ uint32_t peers(const void *p, int rank) {
  uint32_t remote;
  asm volatile("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(remote) : "r"(shared(p)), "r"(rank));
  return remote;
}

__global__ void __cluster_dims__(2, 1, 1) exchange(const int *in, int *out) {
  __shared__ int box[BLOCK];
  __shared__ uint64_t full;
  cg::cluster_group cluster = cg::this_cluster();
  int t = threadIdx.x, peer = cluster.block_rank() ^ 1;
  if (t == 0) {
    asm volatile("mbarrier.init.shared.b64 [%0], 1;" ::"r"(shared(&full)) : "memory");
    asm volatile("mbarrier.arrive.expect_tx.shared.b64 _, [%0], %1;" ::"r"(shared(&full)), "n"(4 * BLOCK) : "memory");
  }
  cluster.sync();
  asm volatile("st.async.shared::cluster.mbarrier::complete_tx::bytes.b32 [%0], %1, [%2];" // want error:copy-not-awaited
               ::"r"(peers(&box[t], peer)), "r"(in[blockIdx.x * BLOCK + t]), "r"(peers(&full, peer)) : "memory");
  out[blockIdx.x * BLOCK + t] = box[BLOCK - 1 - t]; // want error:copy-not-awaited
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
