// A block of a cluster reads the shared memory of another that has ended.
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
  if (cluster.block_rank() == 1) return;
  int sum = 0;
  for (int i = 0; i < 20000; i++) sum += i ^ sum;
  out[t] = sum + cluster.map_shared_rank(box, 1)[t];   // want error:peer-gone
}

int main() {
  int *out;
  cudaMallocManaged(&out, BLOCK * sizeof(int));
  last<<<2, BLOCK>>>(out);
  printf("%s\n", cudaGetErrorString(cudaDeviceSynchronize()));
}
