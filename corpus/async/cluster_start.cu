// Blocks of a cluster count into each other's shared memory before the other has cleared it.
// -arch=compute_90
#include <cooperative_groups.h>
#include <cstdio>
namespace cg = cooperative_groups;

const int BLOCK = 64, BINS = 32;

__global__ void __cluster_dims__(2, 1, 1) histogram(const int *in, int *out) {
  __shared__ int bins[BINS];
  cg::cluster_group cluster = cg::this_cluster();
  int t = threadIdx.x;
  if (t < BINS) bins[t] = 0;                           // want error:atomic-mixed-with-plain
  int v = in[blockIdx.x * BLOCK + t];
  int *peer = cluster.map_shared_rank(bins, v / BINS % 2);
  atomicAdd(&peer[v % BINS], 1);                       // want error:atomic-mixed-with-plain warning:peer-not-started
  cluster.sync();
  if (t < BINS) out[blockIdx.x * BINS + t] = bins[t];
}

int main() {
  int *in, *out;
  cudaMallocManaged(&in, 2 * BLOCK * sizeof(int));
  cudaMallocManaged(&out, 2 * BINS * sizeof(int));
  for (int i = 0; i < 2 * BLOCK; i++) in[i] = i % (2 * BINS);
  histogram<<<2, BLOCK>>>(in, out);
  cudaDeviceSynchronize();
  printf("out[1] = %d\n", out[1]);
}
