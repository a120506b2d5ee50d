// Functions of the driver API through the runtime.
// stdout: ok
#include "api.h"
int cudaGetDriverEntryPoint(const char *, void **, uint64_t, int *);
int main(void) {
  int (*alloc)(uint64_t *, size_t), status = 9;
  void *none;
  uint64_t p;
  OK(cudaGetDriverEntryPoint("cuMemAlloc", (void **)&alloc, 0, &status));
  TRUE(status == 0 && alloc != NULL);
  OK(cudaFree(NULL)); // makes a context
  OK(alloc(&p, 64));
  OK(cudaMemset((void *)p, 1, 64));
  OK(cudaFree((void *)p));
  OK(cudaGetDriverEntryPoint("cuNoSuchFunction", &none, 0, &status));
  TRUE(status == 1 && none == NULL);
  puts("ok");
}
