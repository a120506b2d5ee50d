// The last of two clusters adds up what all have stored: each thread fences, and one of each cluster counts behind its barrier.
// -arch=compute_90
#include <cooperative_groups.h>
#include <cstdio>

namespace cg = cooperative_groups;

const int BLOCK = 32, BLOCKS = 4;

__global__ void __cluster_dims__(2, 1, 1) total(int *part, int *count, int *out) {
  __shared__ bool last;
  cg::cluster_group cluster = cg::this_cluster();
  int i = blockIdx.x * BLOCK + threadIdx.x;
  part[i] = i;
  __threadfence();
  cluster.sync();
  if (cluster.block_rank() == 1 && threadIdx.x == 0) last = atomicAdd(count, 1) == BLOCKS / 2 - 1;
  cluster.sync();
  if (cluster.block_rank() == 1 && last) {
    __threadfence();
    int sum = 0;
    for (int k = threadIdx.x; k < BLOCKS * BLOCK; k += BLOCK) sum += part[k];
    atomicAdd(out, sum);
  }
}

int main() {
  int *part, *count, *out;
  cudaMallocManaged(&part, BLOCKS * BLOCK * sizeof(int));
  cudaMallocManaged(&count, sizeof(int));
  cudaMallocManaged(&out, sizeof(int));
  total<<<BLOCKS, BLOCK>>>(part, count, out);
  cudaDeviceSynchronize();
  printf("%d\n", *out);
  return *out != 8128;
}
