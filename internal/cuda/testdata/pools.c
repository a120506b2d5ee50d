// The attributes of the memory pool, the linker of the driver, and operators that the host computes in a stream's place.
// flags: -lcuda -lcudart_static -lpthread
// stdout: 42 ok
// launches: main_
#include "api.h"

typedef uint64_t ptr;
int cuInit(unsigned), cuDevicePrimaryCtxRetain(void **, int), cuCtxSetCurrent(void *), cuDeviceGetDefaultMemPool(void **, int);
int cuMemPoolGetAttribute(void *, int, void *), cuMemPoolSetAttribute(void *, int, void *);
int cuMemAllocFromPoolAsync(ptr *, size_t, void *, stream), cuMemFreeAsync(ptr, stream);
int cuLinkCreate_v2(unsigned, int *, void **, void **), cuLinkComplete(void *, void **, size_t *), cuLinkDestroy(void *);
int cuLinkAddData_v2(void *, int, void *, size_t, const char *, unsigned, int *, void **);
int cuLinkAddFile_v2(void *, int, const char *, unsigned, int *, void **);
int cuModuleLoadData(void **, const void *), cuModuleGetFunction(void **, void *, const char *);
int cuLaunchKernel(void *, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, stream, void **, void **);
int cuMemcpyDtoH_v2(void *, ptr, size_t);
void *fencepostHostAddress(ptr);
int fencepostOperator(const char *, stream, const uint64_t *, size_t);

#define HEAD ".version 8.0\n.target sm_80\n.address_size 64\n"
static char first[] = HEAD ".extern .func (.param .b32 r) answer();\n.visible .entry main_(.param .u64 p) {\n"
                           ".reg .u64 %a; .reg .u32 %x; .param .b32 r; ld.param.u64 %a, [p];\n"
                           "call (r), answer; ld.param.u32 %x, [r]; st.global.u32 [%a], %x; ret;\n}\n";
static char second[] = HEAD ".visible .func (.param .b32 r) answer() { st.param.b32 [r], 42; ret; }\n";

int main(void) {
  void *context, *pool, *linker, *image, *module, *kernel;
  ptr p, q;
  uint64_t in_use, zero = 0;
  size_t size;
  int reuse, got = 0;
  OK(cuInit(0));
  OK(cuDevicePrimaryCtxRetain(&context, 0));
  OK(cuCtxSetCurrent(context));
  OK(cuDeviceGetDefaultMemPool(&pool, 0));
  OK(cuMemPoolGetAttribute(pool, 1, &reuse));
  TRUE(reuse == 1);
  OK(cuMemAllocFromPoolAsync(&p, 1000, pool, 0));
  OK(cuMemAllocFromPoolAsync(&q, 500, pool, 0));
  OK(cuMemFreeAsync(q, 0));
  OK(cuMemPoolGetAttribute(pool, 7, &in_use));
  TRUE(in_use == 1000);
  OK(cuMemPoolGetAttribute(pool, 8, &in_use));
  TRUE(in_use == 1500);
  OK(cuMemPoolSetAttribute(pool, 8, &zero));
  OK(cuMemPoolGetAttribute(pool, 8, &in_use));
  TRUE(in_use == 1000);
  WANT(cuMemPoolSetAttribute(pool, 7, &zero), 1);

  OK(cuLinkCreate_v2(0, NULL, NULL, &linker));
  WANT(cuLinkComplete(linker, &image, &size), 200);
  OK(cuLinkAddData_v2(linker, 1, first, sizeof first, "first", 0, NULL, NULL));
  OK(cuLinkAddData_v2(linker, 1, second, sizeof second - 1, "second", 0, NULL, NULL));
  OK(cuLinkAddFile_v2(linker, 4, "/nowhere/libcudadevrt.a", 0, NULL, NULL));
  OK(cuLinkComplete(linker, &image, &size));
  OK(cuModuleLoadData(&module, image));
  OK(cuLinkDestroy(linker));
  OK(cuModuleGetFunction(&kernel, module, "main_"));
  void *params[] = {&p};
  OK(cuLaunchKernel(kernel, 1, 1, 1, 1, 1, 1, 0, NULL, params, NULL));
  OK(cuMemcpyDtoH_v2(&got, p, 4));
  TRUE(*(int *)fencepostHostAddress(p) == got);

  const uint64_t boxes[] = {0, p, 4, 0, 4, 10, 1, 1, p + 40, 0, 0, 40, 1, 1};
  OK(fencepostOperator("aten::add", NULL, boxes, 2));
  const uint64_t beyond[] = {1, p + 996, 0, 0, 8, 1, 1};
  WANT(fencepostOperator("aten::add", NULL, beyond, 1), 1);
  OK(cuMemFreeAsync(p, 0));
  printf("%d ok\n", got);
  return 0;
}
