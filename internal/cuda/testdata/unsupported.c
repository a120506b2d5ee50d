// Calls that are not supported give the API's own error and are named.
// stdout: ok
// unsupported: cudaDestroyExternalMemory cudaGraphicsMapResources
#include "api.h"

int cudaDestroyExternalMemory(void *);

int main(void) {
  void *x;
  WANT(cudaDestroyExternalMemory(NULL), 801);
  WANT(cudaDestroyExternalMemory(NULL), 801);
  WANT(cudaGraphicsMapResources(1, &x, NULL), 801);
  puts("ok");
}
