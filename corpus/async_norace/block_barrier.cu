// Copies complete with a phase of a barrier, for which all threads wait.
#include <cuda/barrier>
#include <cstdio>

const int BLOCK = 128;

__global__ void load(const int *in, int *out) {
  __shared__ alignas(16) int tile[BLOCK];
  __shared__ cuda::barrier<cuda::thread_scope_block> done;
  int t = threadIdx.x;
  if (t == 0) init(&done, BLOCK);
  __syncthreads();
  cuda::memcpy_async(&tile[t], &in[t], sizeof(int), done);
  done.arrive_and_wait();
  out[t] = tile[(t + 36) % BLOCK];
}

int main() {
  int *in, *out;
  cudaMallocManaged(&in, BLOCK * sizeof(int));
  cudaMallocManaged(&out, BLOCK * sizeof(int));
  for (int i = 0; i < BLOCK; i++) in[i] = i;
  load<<<1, BLOCK>>>(in, out);
  cudaDeviceSynchronize();
  printf("out[0] = %d\n", out[0]);
}
