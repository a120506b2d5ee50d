// A volatile flag with fences orders the data, as it always has; the flag itself should be atomic.
#include <cstdio>

__global__ void message(int *data, int *flag, int *out) {
  if (blockIdx.x == 0) {
    *data = 42;
    __threadfence();
    *(volatile int *)flag = 1; // want warning:volatile
  } else {
    while (*(volatile int *)flag == 0) {} // want warning:volatile
    __threadfence();
    *out = *data;
  }
}

int main() {
  int *data, *flag, *out;
  cudaMallocManaged(&data, sizeof(int));
  cudaMallocManaged(&flag, sizeof(int));
  cudaMallocManaged(&out, sizeof(int));
  *data = *flag = *out = 0;
  message<<<2, 1>>>(data, flag, out);
  cudaDeviceSynchronize();
  printf("received %d\n", *out);
}
