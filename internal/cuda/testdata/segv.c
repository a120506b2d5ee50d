// Touching device memory on the host is a crash, as it is with a real device.
// signal: segmentation fault
// stdout: touching
#include "api.h"

int main(void) {
  int *p;
  OK(cudaMalloc((void **)&p, 16));
  printf("touching\n");
  fflush(stdout);
  *p = 1;
  printf("survived\n");
}
