// A plain flag. Not even the fences help: nothing makes the compiler or the hardware treat it as a signal.
#include <cstdio>

__global__ void message(int *data, int *flag, int *out) {
  if (blockIdx.x == 0) {
    *data = 42; // want error:unordered
    __threadfence();
    *flag = 1; // want error:unordered
  } else {
    while (*flag == 0) {} // want error:unordered
    __threadfence();
    *out = *data; // want error:unordered
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
