// Two groups of warps use one buffer, and nothing says whose turn it is.
// -arch=compute_80
#include <cstdint>
#include <cstdio>

const int GROUP = 64, TURNS = 3;

// bar.arrive says that the turn goes on to the other group, bar.sync waits for the own one.
__device__ void pass(int barrier) { asm volatile("bar.arrive %0, %1;" ::"r"(barrier), "n"(2 * GROUP) : "memory"); }
__device__ void take(int barrier) { asm volatile("bar.sync %0, %1;" ::"r"(barrier), "n"(2 * GROUP) : "memory"); }

__global__ void pingpong(const int *in, int *out) {
  __shared__ int buffer[GROUP];
  int group = threadIdx.x / GROUP, t = threadIdx.x % GROUP, sum = 0;
  for (int turn = 0; turn < TURNS; turn++) {
    buffer[t] = in[(2 * turn + group) * GROUP + t]; // want error:missing-barrier
    asm volatile("bar.sync %0, %1;" ::"r"(3 + group), "n"(GROUP) : "memory");
    sum += buffer[GROUP - 1 - t]; // want error:missing-barrier
    asm volatile("bar.sync %0, %1;" ::"r"(3 + group), "n"(GROUP) : "memory");
  }
  out[threadIdx.x] = sum;
}

int main() {
  int *in, *out;
  cudaMallocManaged(&in, 2 * TURNS * GROUP * sizeof(int));
  cudaMallocManaged(&out, 2 * GROUP * sizeof(int));
  for (int i = 0; i < 2 * TURNS * GROUP; i++) in[i] = i;
  pingpong<<<1, 2 * GROUP>>>(in, out);
  cudaDeviceSynchronize();
  printf("out[1] = %d\n", out[1]);
}
