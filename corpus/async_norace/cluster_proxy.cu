// Each thread of a cluster fences what it has written to a peer before the barrier that lets that copy it in bulk.
// -arch=compute_90
#include <cooperative_groups.h>
#include <cstdint>
#include <cstdio>

namespace cg = cooperative_groups;

const int BLOCK = 32;

__global__ void __cluster_dims__(2, 1, 1) exchange(const int *in, int *out) {
  __shared__ alignas(128) int box[2 * BLOCK];
  cg::cluster_group cluster = cg::this_cluster();
  int t = threadIdx.x, rank = cluster.block_rank();
  cluster.sync();
  int v = in[blockIdx.x * BLOCK + t];
  box[rank * BLOCK + t] = v;
  cluster.map_shared_rank(box, rank ^ 1)[rank * BLOCK + t] = -v;
  asm volatile("fence.proxy.async;" ::: "memory");
  cluster.sync();
  if (t == 0) {
    asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], %2;"
                 ::"l"(out + blockIdx.x * 2 * BLOCK), "r"((uint32_t)__cvta_generic_to_shared(box)), "n"(8 * BLOCK) : "memory");
    asm volatile("cp.async.bulk.commit_group; cp.async.bulk.wait_group 0;" ::: "memory");
  }
}

int main() {
  int *in, *out;
  cudaMallocManaged(&in, 2 * BLOCK * sizeof(int));
  cudaMallocManaged(&out, 4 * BLOCK * sizeof(int));
  for (int i = 0; i < 2 * BLOCK; i++) in[i] = i;
  exchange<<<2, BLOCK>>>(in, out);
  cudaDeviceSynchronize();
  printf("out[33] = %d\n", out[33]);
  return out[33] != -33 || out[65] != -1;
}
