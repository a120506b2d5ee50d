// A producer warp fills two buffers in turn, a consumer warp empties them. It says full, nobody ever says empty.
#include <cstdio>

const int N = 128, BLOCK = 64;

__device__ void arrive(int id) { asm volatile("bar.arrive %0, 64;" ::"r"(id) : "memory"); }
__device__ void sync(int id) { asm volatile("bar.sync %0, 64;" ::"r"(id) : "memory"); }

const int STEPS = 4, FULL = 1;

__global__ void ring(const int *in, int *out) {
  __shared__ int buffer[2][32];
  int lane = threadIdx.x % 32;
  if (threadIdx.x < 32) {
    for (int i = 0; i < STEPS; i++) {
      buffer[i % 2][lane] = in[i * 32 + lane]; // want error:missing-barrier
      arrive(FULL + i);
    }
  } else {
    for (int i = 0; i < STEPS; i++) {
      sync(FULL + i);
      out[i * 32 + lane] = buffer[i % 2][31 - lane]; // want error:missing-barrier
    }
  }
}

int main() {
  int *in, *out;
  cudaMallocManaged(&in, N * sizeof(int));
  cudaMallocManaged(&out, N * sizeof(int));
  for (int i = 0; i < N; i++) in[i] = i, out[i] = 0;
  ring<<<1, BLOCK>>>(in, out);
  cudaDeviceSynchronize();
  printf("out[0] = %d\n", out[0]);
}
