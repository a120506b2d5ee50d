// Each thread stores four elements at once and reads some of its own one by one; its neighbours only touch theirs.
#include <cstdio>

const int N = 512, BLOCK = 128;

__global__ void spread(const int *in, int *out) {
  int t = threadIdx.x;
  int4 *quads = (int4 *)out;
  quads[t] = make_int4(in[t], in[t] + 1, in[t] + 2, in[t] + 3);
  int third = out[4 * t + 2];
  out[4 * t] = third;
}

int main() {
  int *in, *out;
  cudaMallocManaged(&in, N * sizeof(int));
  cudaMallocManaged(&out, N * sizeof(int));
  for (int i = 0; i < N; i++) in[i] = i, out[i] = 0;
  spread<<<1, BLOCK>>>(in, out);
  cudaDeviceSynchronize();
  int wrong = 0;
  for (int i = 0; i < N; i++) wrong += out[i] != (i % 4 == 0 ? i / 4 + 2 : i / 4 + i % 4);
  printf("%d wrong\n", wrong);
  return wrong != 0;
}
