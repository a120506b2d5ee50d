// Device, constant and managed variables.
// stdout: 10 22 5 6 48 ok
#include <cstdio>
#include <cstdlib>
__device__ int table[4] = {1, 2, 3, 4};
__constant__ float scale[12];
__managed__ int shared_value = 5;
__device__ int hidden;
__global__ void work() { table[0] = table[1] * (int)scale[3]; shared_value++; hidden = 1; }
#define OK(x) do { cudaError_t e = (x); if (e) { printf("line %d: %s\n", __LINE__, cudaGetErrorName(e)); exit(1); } } while (0)
int main() {
  int v[4], *address, before = shared_value;
  size_t size;
  float s[12] = {0, 0, 0, 11};
  OK(cudaMemcpyToSymbol(scale, s, sizeof s));
  OK(cudaMemcpyFromSymbol(v, table, sizeof v));
  int sum = v[0] + v[1] + v[2] + v[3];
  work<<<1, 1>>>();
  OK(cudaDeviceSynchronize());
  OK(cudaMemcpyFromSymbol(&v[1], table, 4, 0));
  OK(cudaGetSymbolSize(&size, scale));
  OK(cudaGetSymbolAddress((void **)&address, table));
  OK(cudaMemcpy(&v[2], address, 4, cudaMemcpyDeviceToHost));
  if (v[2] != v[1] || cudaMemcpyFromSymbol(v, table, 17) != cudaErrorInvalidValue) return 2;
  int other = 9;
  OK(cudaMemcpyToSymbol(shared_value, &other, 4));
  if (shared_value != 9) return 3;
  OK(cudaMemcpyToSymbol(shared_value, &before, 4));
  shared_value++;
  if (cudaGetSymbolAddress((void **)&address, v) != cudaErrorInvalidSymbol) return 4;
  printf("%d %d %d %d %zu ok\n", sum, v[1], before, shared_value, size);
}
