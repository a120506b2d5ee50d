// Split-k: the first block of a cluster adds what the others have summed, behind a barrier of the cluster.
// -arch=compute_90
#include <cooperative_groups.h>
#include <cstdint>
#include <cstdio>

namespace cg = cooperative_groups;

const int SPLIT = 4, BLOCK = 64, DEPTH = 8;

__global__ void __cluster_dims__(SPLIT, 1, 1) product(const int *in, int *out) {
  __shared__ int part[BLOCK];
  cg::cluster_group cluster = cg::this_cluster();
  int t = threadIdx.x, rank = cluster.block_rank(), sum = 0;
  for (int k = 0; k < DEPTH; k++) sum += in[(rank * DEPTH + k) * BLOCK + t];
  part[t] = sum;
  cluster.sync();
  if (rank == 0) {
    for (int r = 1; r < SPLIT; r++) sum += cluster.map_shared_rank(part, r)[t];
    out[t] = sum;
  }
  cluster.sync();
}

int main() {
  int *in, *out;
  cudaMallocManaged(&in, SPLIT * DEPTH * BLOCK * sizeof(int));
  cudaMallocManaged(&out, BLOCK * sizeof(int));
  for (int i = 0; i < SPLIT * DEPTH * BLOCK; i++) in[i] = i;
  product<<<SPLIT, BLOCK>>>(in, out);
  cudaDeviceSynchronize();
  printf("out[1] = %d\n", out[1]);
  return out[1] != 31776;
}
