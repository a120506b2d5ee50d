// Calls that are not supported give the API's own error and are named.
// stdout: ok
// unsupported: cudaMallocMipmappedArray cudaUserObjectCreate
#include "api.h"

int cudaUserObjectCreate(void **, void *, void (*)(void *), unsigned, unsigned);

int main(void) {
  void *x;
  WANT(cudaUserObjectCreate(&x, 0, 0, 1, 1), 801);
  WANT(cudaUserObjectCreate(&x, 0, 0, 1, 1), 801);
  WANT(cudaMallocMipmappedArray(&x, NULL, 1, 1, 1, 1, 0), 801);
  puts("ok");
}
