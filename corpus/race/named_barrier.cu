// Two loaders fill a half each and arrive at a barrier of their own. The users wait at the barrier of the other half.
#include <cstdio>

const int N = 128, BLOCK = 128;

__device__ void arrive(int id) { asm volatile("bar.arrive %0, 64;" ::"r"(id) : "memory"); }
__device__ void sync(int id) { asm volatile("bar.sync %0, 64;" ::"r"(id) : "memory"); }

__global__ void pipeline(const int *in, int *out) {
  __shared__ int tile[64];
  int warp = threadIdx.x / 32, lane = threadIdx.x % 32, half = warp % 2;
  if (warp < 2) {
    tile[half * 32 + lane] = in[threadIdx.x]; // want error:missing-barrier
    arrive(1 + half);
  } else {
    sync(2 - half);
    out[threadIdx.x] = 2 * tile[half * 32 + lane]; // want error:missing-barrier
  }
}

int main() {
  int *in, *out;
  cudaMallocManaged(&in, N * sizeof(int));
  cudaMallocManaged(&out, N * sizeof(int));
  for (int i = 0; i < N; i++) in[i] = i, out[i] = 0;
  pipeline<<<N / BLOCK, BLOCK>>>(in, out);
  cudaDeviceSynchronize();
  printf("out[0] = %d\n", out[0]);
}
