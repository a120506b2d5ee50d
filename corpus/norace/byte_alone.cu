// Atomic operations on variables of one and two bytes that are alone: libcu++ reads the word around them, past their end.
#include <cuda/atomic>
#include <cstdio>

__device__ unsigned short turn;

__global__ void add(int *data, unsigned char *done, int *out) {
  __shared__ unsigned char ready;
  cuda::atomic_ref<unsigned char, cuda::thread_scope_block> local(ready);
  cuda::atomic_ref<unsigned short, cuda::thread_scope_device> lock(turn);
  cuda::atomic_ref<unsigned char, cuda::thread_scope_device> count(*done);
  if (threadIdx.x == 0) {
    ready = 0;
    unsigned short mine = blockIdx.x;
    while (!lock.compare_exchange_weak(mine, mine, cuda::memory_order_acquire)) mine = blockIdx.x;
    *data += 1;
    lock.store(blockIdx.x + 1, cuda::memory_order_release);
  }
  __syncthreads();
  local.fetch_or(1, cuda::memory_order_relaxed);
  if (threadIdx.x == 0 && count.fetch_add(1, cuda::memory_order_acq_rel) == gridDim.x - 1) *out = *data;
}

int main() {
  int *data, *out;
  unsigned char *done;
  cudaMallocManaged(&data, sizeof(int));
  cudaMallocManaged(&done, 1);
  cudaMallocManaged(&out, sizeof(int));
  *data = *out = *done = 0;
  add<<<4, 2>>>(data, done, out);
  cudaDeviceSynchronize();
  printf("added %d, %d blocks\n", *out, *done);
  return *out != 4 || *done != 4;
}
