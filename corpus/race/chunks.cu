// Each thread works on a chunk, and the bounds overlap by one: j <= end should be j < end.
#include <cstdio>

const int N = 256, BLOCK = 8;

const int CHUNK = 8;

__global__ void twice(const int *in, int *out) {
  int begin = (blockIdx.x * BLOCK + threadIdx.x) * CHUNK, end = min(begin + CHUNK, N - 1);
  for (int j = begin; j <= end; j++) out[j] = in[j] + out[j]; // want error:unordered
}

int main() {
  int *in, *out;
  cudaMallocManaged(&in, N * sizeof(int));
  cudaMallocManaged(&out, N * sizeof(int));
  for (int i = 0; i < N; i++) in[i] = i, out[i] = 0;
  twice<<<N / CHUNK / BLOCK, BLOCK>>>(in, out);
  cudaDeviceSynchronize();
  printf("out[0] = %d\n", out[0]);
}
