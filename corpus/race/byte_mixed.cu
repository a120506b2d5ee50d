// Threads add atomically to one byte of shared memory, and one thread writes that byte as usual.
#include <cuda/atomic>
#include <cstdio>

const int BLOCK = 64;

__global__ void add(int *out) {
  __shared__ unsigned char bytes[4];
  int t = threadIdx.x;
  if (t < 4) bytes[t] = 0;
  __syncthreads();
  cuda::atomic_ref<unsigned char, cuda::thread_scope_block>(bytes[1]).fetch_add(1, cuda::memory_order_relaxed); // want error:atomic-mixed-with-plain
  if (t == 40) bytes[1] = 9; // want error:atomic-mixed-with-plain
  __syncthreads();
  if (t < 4) out[t] = bytes[t];
}

int main() {
  int *out;
  cudaMallocManaged(&out, 4 * sizeof(int));
  for (int i = 0; i < 4; i++) out[i] = 0;
  add<<<1, BLOCK>>>(out);
  cudaDeviceSynchronize();
  printf("%d %d %d %d\n", out[0], out[1], out[2], out[3]);
  return out[0] != 0;
}
