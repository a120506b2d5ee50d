// Blocks of a cluster read what others wrote before an arrival that releases.
// -arch=compute_90
#include <cooperative_groups.h>
#include <cstdio>
namespace cg = cooperative_groups;

const int BLOCK = 32, RANKS = 4;

__device__ void meet() { asm volatile("barrier.cluster.arrive.release.aligned;\n\tbarrier.cluster.wait.acquire.aligned;" ::: "memory"); }

__global__ void __cluster_dims__(RANKS, 1, 1) ring(int *out) {
  __shared__ int box[BLOCK];
  cg::cluster_group cluster = cg::this_cluster();
  int t = threadIdx.x, rank = cluster.block_rank();
  box[t] = 100 * rank + t;
  meet();
  int *next = cluster.map_shared_rank(box, (rank + 1) % RANKS);
  int v = next[t];
  cluster.sync();
  out[blockIdx.x * BLOCK + t] = v;
}

int main() {
  int *out;
  cudaMallocManaged(&out, 2 * RANKS * BLOCK * sizeof(int));
  ring<<<2 * RANKS, BLOCK>>>(out);
  cudaDeviceSynchronize();
  int wrong = 0;
  for (int i = 0; i < 2 * RANKS * BLOCK; i++) wrong += out[i] != (i / BLOCK + 1) % RANKS * 100 + i % BLOCK;
  printf("%d wrong\n", wrong);
  return wrong != 0;
}
