// A thread arrives at a barrier, and waits for its phase before it reads what others have written.
#include <cuda/barrier>
#include <cstdio>

const int BLOCK = 128;

__global__ void load(const int *in, int *out) {
  __shared__ int tile[BLOCK];
  __shared__ cuda::barrier<cuda::thread_scope_block> met[2];
  int t = threadIdx.x;
  if (t == 0) {
    init(&met[0], BLOCK);
    init(&met[1], BLOCK);
  }
  __syncthreads();
  tile[t] = in[t];
  met[0].wait(met[0].arrive());
  int x = tile[(t + 36) % BLOCK];
  met[1].arrive_and_wait();
  out[t] = x;
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
