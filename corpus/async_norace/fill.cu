// A thread fills the rest of its row with zeros by the copy itself, which is told to read less than it writes.
#include <cstdio>
#include <cuda_pipeline.h>

const int STEPS = 1, BLOCK = 128;

__global__ void load(const int *in, int *out) {
  __shared__ alignas(16) int tile[BLOCK][4];
  int t = threadIdx.x, fill = t % 4 * 4;
  const int *from = &in[t / 4 * 4];
  __pipeline_memcpy_async(tile[t], from, 16, fill);
  __pipeline_commit();
  __pipeline_wait_prior(0);
  __syncthreads();
  int sum = 0;
  for (int i = 0; i < 4; i++) sum += tile[t ^ 32][i];
  out[t] = sum;
}

int main() {
  int *in, *out;
  cudaMallocManaged(&in, STEPS * BLOCK * sizeof(int));
  cudaMallocManaged(&out, BLOCK * sizeof(int));
  for (int i = 0; i < STEPS * BLOCK; i++) in[i] = i;
  load<<<1, BLOCK>>>(in, out);
  cudaDeviceSynchronize();
  int wrong = 0;
  for (int t = 0; t < BLOCK; t++) {
    int want = 0;
    for (int i = 0; i < 4 - t % 4; i++) want += (t ^ 32) / 4 * 4 + i;
    wrong += out[t] != want;
  }
  printf("%d wrong\n", wrong);
  return wrong != 0;
}
