// Calls that are not supported give the API's own error and are named.
// stdout: ok
// unsupported: cudaIpcGetEventHandle cudaMallocMipmappedArray
#include "api.h"

int cudaIpcGetEventHandle(void *, event);

int main(void) {
  void *x;
  WANT(cudaIpcGetEventHandle(&x, 0), 801);
  WANT(cudaIpcGetEventHandle(&x, 0), 801);
  WANT(cudaMallocMipmappedArray(&x, NULL, 1, 1, 1, 1, 0), 801);
  puts("ok");
}
