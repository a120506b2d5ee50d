// A warp's reduction with __syncwarp between the levels, but within a level a lane reads what its neighbour overwrites.
#include <cstdio>

const int WARP = 32;

__global__ void reduce(const int *in, int *out) {
  __shared__ int sum[WARP + WARP / 2];
  int lane = threadIdx.x;
  sum[lane] = in[lane];
  __syncwarp();
  for (int half = WARP / 2; half > 0; half /= 2) {
    sum[lane] += sum[lane + half]; // want warning:warp-synchronous
    __syncwarp();
  }
  if (lane == 0) *out = sum[0];
}

int main() {
  int *in, *out;
  cudaMallocManaged(&in, WARP * sizeof(int));
  cudaMallocManaged(&out, sizeof(int));
  for (int i = 0; i < WARP; i++) in[i] = 1;
  reduce<<<1, WARP>>>(in, out);
  cudaDeviceSynchronize();
  printf("sum %d\n", *out);
}
