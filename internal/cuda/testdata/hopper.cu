// The device of a program that is built for sm_90a has clusters, and the shared memory of one.
// flags: -gencode arch=compute_90a,code=compute_90a -gencode arch=compute_80,code=compute_80
// stdout: 9.0 132 232448 1
// stdout: 900 0
// stdout: 0 256 8, 912
// launches: _Z5whichPi _Z4widePi
#include <cstdio>
__global__ void which(int *arch) {
#if __CUDA_ARCH__ >= 900
  *arch = __CUDA_ARCH__;
#endif
}
extern __shared__ int dynamic[];
__global__ void wide(int *p) { if (p) *p = dynamic[0]; }
int main() {
  cudaDeviceProp p;
  int *arch, clusters, most, n = 0;
  cudaGetDeviceProperties(&p, 0);
  cudaDeviceGetAttribute(&n, cudaDevAttrClusterLaunch, 0);
  printf("%d.%d %d %d %d\n", p.major, p.minor, p.multiProcessorCount, (int)p.sharedMemPerBlockOptin, n);
  cudaMallocManaged(&arch, sizeof *arch);
  if (p.major >= 9) which<<<1, 1>>>(arch);
  cudaDeviceSynchronize();
  cudaFuncSetAttribute(wide, cudaFuncAttributeMaxDynamicSharedMemorySize, 220 << 10);
  wide<<<1, 1, 220 << 10>>>(0);
  printf("%d %d\n", *arch, (int)cudaDeviceSynchronize());
  cudaLaunchAttribute shape;
  shape.id = cudaLaunchAttributeClusterDimension;
  shape.val.clusterDim.x = 4, shape.val.clusterDim.y = shape.val.clusterDim.z = 1;
  cudaLaunchConfig_t c = {};
  c.gridDim = 4, c.blockDim = 256, c.attrs = &shape, c.numAttrs = 1;
  n = cudaOccupancyMaxActiveClusters(&clusters, wide, &c);
  cudaOccupancyMaxPotentialClusterSize(&most, wide, &c);
  printf("%d %d %d, ", n, clusters, most);
  shape.val.clusterDim.x = 16;
  printf("%d\n", (int)cudaOccupancyMaxActiveClusters(&clusters, wide, &c));
}
