// Warps append what they keep to one list. The leader of a warp reads the end of the list before it moves it, so that two warps may
// take the same places.
#include <cstdio>

const int N = 256, BLOCK = 64;

__global__ void append(const int *in, int *end, int *list) {
  int i = blockIdx.x * BLOCK + threadIdx.x, lane = threadIdx.x % 32, base;
  unsigned kept = __ballot_sync(0xffffffff, in[i] % 2);
  if (lane == 0) {
    base = *end;                  // want error:atomic-mixed-with-plain
    atomicAdd(end, __popc(kept)); // want error:atomic-mixed-with-plain
  }
  base = __shfl_sync(0xffffffff, base, 0);
  if (in[i] % 2) list[i / 32 * N + base + __popc(kept & ((1u << lane) - 1))] = in[i]; // a part for each warp: no race
}

int main() {
  int *in, *end, *list;
  cudaMallocManaged(&in, N * sizeof(int));
  cudaMallocManaged(&end, sizeof(int));
  cudaMallocManaged(&list, 8 * N * sizeof(int));
  for (int i = 0; i < N; i++) in[i] = i;
  *end = 0;
  append<<<N / BLOCK, BLOCK>>>(in, end, list);
  cudaDeviceSynchronize();
  printf("%d are odd\n", *end);
}
