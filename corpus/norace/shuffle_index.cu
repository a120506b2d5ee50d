// A shuffle passes an index on, and __syncwarp orders what lane 0 stored there before the loads of the others.
#include <cstdio>

const int N = 32, BLOCK = 32;

__global__ void publish(const int *in, int *out) {
  __shared__ int box[BLOCK];
  int lane = threadIdx.x, at = 0;
  if (lane == 0) {
    at = in[3];
    box[at] = 7;
  }
  at = __shfl_sync(0xffffffff, at, 0);
  __syncwarp();
  out[lane] = box[at] + lane;
}

int main() {
  int *in, *out;
  cudaMallocManaged(&in, N * sizeof(int));
  cudaMallocManaged(&out, N * sizeof(int));
  for (int i = 0; i < N; i++) in[i] = i, out[i] = 0;
  publish<<<N / BLOCK, BLOCK>>>(in, out);
  cudaDeviceSynchronize();
  int wrong = 0;
  for (int i = 0; i < N; i++) wrong += out[i] != 7 + i;
  printf("%d wrong\n", wrong);
  return wrong != 0;
}
