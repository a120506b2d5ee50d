// A tree reduction that leaves its last steps to one warp. That warp does not wait for what the others add in the last step of the
// loop, whose barrier is at the beginning of its body.
#include <cstdio>

const int BLOCK = 256;

__global__ void reduce(const int *in, int *out) {
  __shared__ int sum[BLOCK];
  int t = threadIdx.x;
  sum[t] = in[t];
  for (int half = BLOCK / 2; half >= 64; half /= 2) {
    __syncthreads();
    if (t < half) sum[t] += sum[t + half]; // want error:missing-barrier
  }
  if (t < 32) {
    int x = sum[t] + sum[t + 32]; // want error:missing-barrier
    for (int half = 16; half > 0; half /= 2) x += __shfl_down_sync(0xffffffff, x, half);
    if (t == 0) *out = x;
  }
}

int main() {
  int *in, *out;
  cudaMallocManaged(&in, BLOCK * sizeof(int));
  cudaMallocManaged(&out, sizeof(int));
  for (int i = 0; i < BLOCK; i++) in[i] = i;
  reduce<<<1, BLOCK>>>(in, out);
  cudaDeviceSynchronize();
  printf("sum %d\n", *out);
}
