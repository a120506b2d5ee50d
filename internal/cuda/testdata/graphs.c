// Calls that are not supported give the API's own error and are named.
// stdout: ok
// unsupported: cudaGraphCreate cudaMallocArray cudaMemcpy3D with an array
#include "api.h"

int main(void) {
  void *x;
  copy3d c = {.from_array = &x, .size = {1, 1, 1}};
  WANT(cudaGraphCreate(&x, 0), 801);
  WANT(cudaGraphCreate(&x, 0), 801);
  WANT(cudaMallocArray(&x, NULL, 1, 1, 0), 801);
  WANT(cudaMemcpy3D(&c), 801);
  puts("ok");
}
