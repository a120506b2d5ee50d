// A warp's reduction: __syncwarp separates the reads of a level from its writes, and its writes from the next reads.
#include <cstdio>

const int WARP = 32;

__global__ void reduce(const int *in, int *out) {
  __shared__ int sum[WARP];
  int lane = threadIdx.x;
  sum[lane] = in[lane];
  __syncwarp();
  for (int half = WARP / 2; half > 0; half /= 2) {
    int other = lane < half ? sum[lane + half] : 0;
    __syncwarp();
    sum[lane] += other;
    __syncwarp();
  }
  if (lane == 0) *out = sum[0];
}

int main() {
  int *in, *out;
  cudaMallocManaged(&in, WARP * sizeof(int));
  cudaMallocManaged(&out, sizeof(int));
  for (int i = 0; i < WARP; i++) in[i] = i;
  reduce<<<1, WARP>>>(in, out);
  cudaDeviceSynchronize();
  printf("sum %d\n", *out);
  return *out != WARP * (WARP - 1) / 2;
}
