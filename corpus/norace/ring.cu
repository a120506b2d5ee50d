// A producer warp fills two buffers in turn, a consumer warp empties them: one barrier says full, another empty.
#include <cstdio>

const int N = 128, BLOCK = 64;

__device__ void arrive(int id) { asm volatile("bar.arrive %0, 64;" ::"r"(id) : "memory"); }
__device__ void sync(int id) { asm volatile("bar.sync %0, 64;" ::"r"(id) : "memory"); }

const int STEPS = 4, FULL = 1, EMPTY = 3;

__global__ void ring(const int *in, int *out) {
  __shared__ int buffer[2][32];
  int lane = threadIdx.x % 32;
  if (threadIdx.x < 32) {
    for (int i = 0; i < STEPS; i++) {
      if (i >= 2) sync(EMPTY + i % 2);
      buffer[i % 2][lane] = in[i * 32 + lane];
      arrive(FULL + i % 2);
    }
  } else {
    for (int i = 0; i < STEPS; i++) {
      sync(FULL + i % 2);
      out[i * 32 + lane] = buffer[i % 2][31 - lane];
      if (i < STEPS - 2) arrive(EMPTY + i % 2);
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
  int wrong = 0;
  for (int i = 0; i < N; i++) wrong += out[i] != i / 32 * 32 + 31 - i % 32;
  printf("%d wrong\n", wrong);
  return wrong != 0;
}
