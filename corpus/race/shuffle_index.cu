// A shuffle passes an index on to the other lanes. It does not order what lane 0 stored there before their loads.
#include <cstdio>

const int N = 32, BLOCK = 32;

__global__ void publish(const int *in, int *out) {
  __shared__ int box[BLOCK];
  int lane = threadIdx.x, at = 0;
  if (lane == 0) {
    at = in[3];
    box[at] = 7; // want warning:warp-synchronous
  }
  at = __shfl_sync(0xffffffff, at, 0);
  out[lane] = box[at] + lane; // want warning:warp-synchronous
}

int main() {
  int *in, *out;
  cudaMallocManaged(&in, N * sizeof(int));
  cudaMallocManaged(&out, N * sizeof(int));
  for (int i = 0; i < N; i++) in[i] = i, out[i] = 0;
  publish<<<N / BLOCK, BLOCK>>>(in, out);
  cudaDeviceSynchronize();
  printf("out[0] = %d\n", out[0]);
}
