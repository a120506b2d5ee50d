// Each thread stores four elements at once; the thread 32 further reads one of them without waiting.
#include <cstdio>

const int N = 512, BLOCK = 128;

__global__ void spread(const int *in, int *out) {
  int t = threadIdx.x;
  int4 *quads = (int4 *)out;
  quads[t] = make_int4(in[t], in[t] + 1, in[t] + 2, in[t] + 3); // want error:missing-barrier
  int third = out[4 * ((t + 32) % BLOCK) + 2]; // want error:missing-barrier
  if (third < 0) printf("negative\n");
}

int main() {
  int *in, *out;
  cudaMallocManaged(&in, N * sizeof(int));
  cudaMallocManaged(&out, N * sizeof(int));
  for (int i = 0; i < N; i++) in[i] = i, out[i] = 0;
  spread<<<1, BLOCK>>>(in, out);
  cudaDeviceSynchronize();
  printf("out[0] = %d\n", out[0]);
}
