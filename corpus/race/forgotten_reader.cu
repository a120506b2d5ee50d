// Two blocks read a word and one replaces it, when the other has. Nothing orders the other's read before that: atomic
// operations alone do not. Who keeps only the last reader of a word has forgotten that one.
#include <cstdio>

__global__ void replace(int *data, int *done, int *out) {
  if (blockIdx.x == 0) {
    out[0] = *data; // want error:missing-fence
    atomicExch(done, 1);
  } else {
    while (atomicAdd(done, 0) == 0) {}
    out[1] = *data;
    *data = 7; // want error:missing-fence
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
}
