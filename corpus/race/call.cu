// The accesses that race are in functions called by the kernel.
#include <cstdio>

const int N = 128, BLOCK = 128;

__device__ __noinline__ void put(int *slots, int i, int value) {
  slots[i] = value; // want error:missing-barrier
}

__device__ int get(const int *slots, int i) {
  return slots[i]; // want error:missing-barrier
}

__global__ void rotate(const int *in, int *out) {
  __shared__ int slots[BLOCK];
  int t = threadIdx.x;
  put(slots, t, in[t]);
  out[t] = get(slots, (t + 32) % BLOCK);
}

int main() {
  int *in, *out;
  cudaMallocManaged(&in, N * sizeof(int));
  cudaMallocManaged(&out, N * sizeof(int));
  for (int i = 0; i < N; i++) in[i] = i, out[i] = 0;
  rotate<<<N / BLOCK, BLOCK>>>(in, out);
  cudaDeviceSynchronize();
  printf("out[0] = %d\n", out[0]);
}
