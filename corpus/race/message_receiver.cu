// The sender fences, the receiver does not: its read of the data may be done before the flag is seen.
#include <cstdio>

__global__ void message(int *data, int *flag, int *out) {
  if (blockIdx.x == 0) {
    *data = 42; // want error:missing-fence
    __threadfence();
    atomicExch(flag, 1);
  } else {
    while (atomicAdd(flag, 0) == 0) {}
    *out = *data; // want error:missing-fence
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
