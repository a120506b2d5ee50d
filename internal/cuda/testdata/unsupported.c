// Calls that are not supported give the API's own error and are named.
// stdout: ok
// unsupported: cudaGraphicsMapResources cudaIpcGetEventHandle
#include "api.h"

int cudaIpcGetEventHandle(void *, event);

int main(void) {
  void *x;
  WANT(cudaIpcGetEventHandle(&x, 0), 801);
  WANT(cudaIpcGetEventHandle(&x, 0), 801);
  WANT(cudaGraphicsMapResources(1, &x, NULL), 801);
  puts("ok");
}
