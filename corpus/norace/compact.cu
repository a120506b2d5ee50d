// Compaction in place: every thread moves its number to where those that are kept end, after all have read theirs.
#include <cstdio>

const int BLOCK = 128;

__global__ void compact(int *data) {
  int t = threadIdx.x, x = data[t];
  unsigned odd = __ballot_sync(0xffffffff, x % 2);
  int to = t / 32 * 16 + __popc(odd & ((1u << t % 32) - 1)); // every warp keeps 16
  __syncthreads();
  if (x % 2) data[to] = x;
}

int main() {
  int *data;
  cudaMallocManaged(&data, BLOCK * sizeof(int));
  for (int i = 0; i < BLOCK; i++) data[i] = i;
  compact<<<1, BLOCK>>>(data);
  cudaDeviceSynchronize();
  printf("the last odd number is %d\n", data[BLOCK / 2 - 1]);
  return data[BLOCK / 2 - 1] != BLOCK - 1;
}
