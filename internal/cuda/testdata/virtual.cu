// Virtual memory management: what is mapped side by side is one allocation, bytes go with the physical allocation, and handles count.
// flags: -lcuda
// stdout: ok
// launches: _Z4fillPii _Z4fillPii _Z3sumPKiPi
// unsupported: cuMemMap of one allocation at two addresses
#include <cstdio>
#include <cstdlib>
#include <cuda.h>

__global__ void fill(int *p, int n) { for (int i = threadIdx.x; i < n; i += blockDim.x) p[i] = i; }
__global__ void sum(const int *p, int *out) { *out = p[0] + p[1]; }

#define WANT(call, code) do { int e = (call); if (e != (code)) printf("line %d: %s gives %d\n", __LINE__, #call, e), exit(9); } while (0)
#define OK(call) WANT(call, 0)
#define TRUE(x) do { if (!(x)) printf("line %d: %s\n", __LINE__, #x), exit(9); } while (0)

int main() {
  CUdeviceptr at, other;
  CUmemGenericAllocationHandle a, b, same;
  CUmemAllocationProp p = {};
  p.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  p.location = {CU_MEM_LOCATION_TYPE_DEVICE, 0};
  CUmemAccessDesc d = {p.location, CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
  size_t unit, before, after, total;
  int has, x[2];
  OK(cudaFree(0));
  OK(cuDeviceGetAttribute(&has, CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED, 0));
  TRUE(has == 1);
  OK(cuMemGetAllocationGranularity(&unit, &p, CU_MEM_ALLOC_GRANULARITY_RECOMMENDED));
  OK(cuMemGetInfo(&before, &total));
  WANT(cuMemAddressReserve(&at, unit + 1, 0, 0, 0), 1);
  OK(cuMemAddressReserve(&at, 4 * unit, 0, 0, 0));
  OK(cuMemAddressReserve(&other, 2 * unit, 0, 0, 0));
  WANT(cuMemCreate(&a, 100, &p, 0), 1);
  OK(cuMemCreate(&a, unit, &p, 0));
  OK(cuMemCreate(&b, unit, &p, 0));
  WANT(cuMemMap(at + 4 * unit, unit, 0, a, 0), 1);
  WANT(cuMemMap(at, 2 * unit, 0, a, 0), 1);
  OK(cuMemMap(at, unit, 0, a, 0));
  WANT(cuMemMap(at, unit, 0, b, 0), 1);
  OK(cuMemMap(at + unit, unit, 0, b, 0));
  WANT(cuMemMap(other, unit, 0, a, 0), 801);
  WANT(cuMemcpyDtoH(x, at, 8), 1); // no access
  OK(cuMemSetAccess(at, 2 * unit, &d, 1));
  OK(cuMemGetInfo(&after, &total));
  TRUE(before - after == 2 * unit);
  fill<<<1, 32>>>((int *)(at + unit) - 64, 128); // over the edge of two
  OK(cuMemcpyDtoH(x, at + unit - 4, 8));
  TRUE(x[0] == 63 && x[1] == 64);
  unsigned long long flags;
  OK(cuMemGetAccess(&flags, &p.location, at + unit));
  TRUE(flags == CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
  OK(cuMemRetainAllocationHandle(&same, (void *)(at + unit + 5)));
  TRUE(same == b);
  CUmemAllocationProp q;
  OK(cuMemGetAllocationPropertiesFromHandle(&q, b));
  TRUE(q.type == p.type && q.location.type == p.location.type);
  WANT(cuMemFree(at), 1);
  WANT(cuMemAddressFree(at, 4 * unit), 1);
  WANT(cuMemUnmap(at, unit / 2), 1);
  OK(cuCtxSynchronize());
  OK(cuMemUnmap(at, 2 * unit));
  OK(cuMemMap(other + unit, unit, 0, b, 0)); // its bytes go with it
  OK(cuMemRelease(b));
  OK(cuMemRelease(b)); // the other handle
  WANT(cuMemRelease(b), 1);
  d.flags = CU_MEM_ACCESS_FLAGS_PROT_READ;
  OK(cuMemSetAccess(other + unit, unit, &d, 1));
  int *out;
  OK(cudaMalloc(&out, 4));
  fill<<<1, 32>>>(out, 1);
  sum<<<1, 1>>>((int *)(other + unit), out);
  OK(cudaMemcpy(x, out, 4, cudaMemcpyDeviceToHost));
  TRUE(x[0] == 64 + 65);
  OK(cuMemUnmap(other + unit, unit));
  OK(cuMemAddressFree(other, 2 * unit));
  OK(cuMemAddressFree(at, 4 * unit));
  WANT(cuMemAddressFree(at, 4 * unit), 1);
  OK(cuMemRelease(a));
  puts("ok");
}
