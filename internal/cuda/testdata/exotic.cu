// A kernel that cannot be executed is an error of the API and is reported as not checked; the others run.
// stdout: 801 0 5
// launches: _Z6exoticPi _Z5plainPi
// errors: exotic.cu:6:30 in _Z6exoticPi: mbarrier.nonsense.b64 is not supported (exotic.cu.ptx:
#include <cstdio>
__global__ void exotic(int *p) { asm volatile("mbarrier.nonsense.b64 [%0];" ::"l"(p)); }
__global__ void plain(int *p) { *p = 5; }
int main() {
  int *p;
  cudaMallocManaged(&p, 4);
  exotic<<<1, 1>>>(p);
  printf("%d ", (int)cudaGetLastError());
  plain<<<1, 1>>>(p);
  printf("%d ", (int)cudaDeviceSynchronize());
  printf("%d\n", *p);
}
