// A block of a cluster waits for those that read its shared memory before it ends.
// -arch=compute_90
#include <cooperative_groups.h>
#include <cstdio>
namespace cg = cooperative_groups;

const int BLOCK = 32;

__global__ void __cluster_dims__(2, 1, 1) last(int *out) {
  __shared__ int box[BLOCK];
  cg::cluster_group cluster = cg::this_cluster();
  int t = threadIdx.x;
  box[t] = t;
  cluster.sync();
  unsigned sum = 0;
  if (cluster.block_rank() == 0) {
    for (int i = 0; i < 200; i++) sum += i ^ sum;
    out[t] = sum + cluster.map_shared_rank(box, 1)[t];
  }
  cluster.sync();
}

int main() {
  int *out;
  cudaMallocManaged(&out, BLOCK * sizeof(int));
  last<<<2, BLOCK>>>(out);
  cudaDeviceSynchronize();
  unsigned sum = 0;
  for (int i = 0; i < 200; i++) sum += i ^ sum;
  int wrong = 0;
  for (int i = 0; i < BLOCK; i++) wrong += out[i] != (int)(sum + i);
  printf("%d wrong\n", wrong);
  return wrong != 0;
}
