// Calls that are not supported give the API's own error and are named.
// stdout: ok
// unsupported: cudaMallocArray cudaMemcpy3D with an array cudaUserObjectCreate
#include "api.h"

int cudaUserObjectCreate(void **, void *, void (*)(void *), unsigned, unsigned);

int main(void) {
  void *x;
  copy3d c = {.from_array = &x, .size = {1, 1, 1}};
  WANT(cudaUserObjectCreate(&x, 0, 0, 1, 1), 801);
  WANT(cudaUserObjectCreate(&x, 0, 0, 1, 1), 801);
  WANT(cudaMallocArray(&x, NULL, 1, 1, 0), 801);
  WANT(cudaMemcpy3D(&c), 801);
  puts("ok");
}
