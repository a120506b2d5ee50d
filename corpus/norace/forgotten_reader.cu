// Two blocks read a word and one replaces it, when the other has: fences make what tells it so order the read before.
#include <cstdio>

__global__ void replace(int *data, int *done, int *out) {
  if (blockIdx.x == 0) {
    out[0] = *data;
    __threadfence();
    atomicExch(done, 1);
  } else {
    while (atomicAdd(done, 0) == 0) {}
    __threadfence();
    out[1] = *data;
    *data = 7;
  }
}

int main() {
  int *data, *done, *out;
  cudaMallocManaged(&data, sizeof(int));
  cudaMallocManaged(&done, sizeof(int));
  cudaMallocManaged(&out, 2 * sizeof(int));
  *data = 42;
  *done = out[0] = out[1] = 0;
  replace<<<2, 1>>>(data, done, out);
  cudaDeviceSynchronize();
  printf("read %d and %d\n", out[0], out[1]);
  return out[0] != 42 || out[1] != 42 || *data != 7;
}
