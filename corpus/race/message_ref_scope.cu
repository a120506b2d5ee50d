// Release and acquire are there, but their scope is the block, and the two sides are in different blocks.
#include <cuda/atomic>
#include <cstdio>

__global__ void message(int *data, int *flag, int *out) {
  if (blockIdx.x == 0) {
    *data = 42; // want error:insufficient-atomic-scope
    cuda::atomic_ref<int, cuda::thread_scope_block> f(*flag);
    f.store(1, cuda::memory_order_release); // want error:insufficient-atomic-scope
  } else {
    cuda::atomic_ref<int, cuda::thread_scope_block> f(*flag);
    while (f.load(cuda::memory_order_acquire) == 0) {} // want error:insufficient-atomic-scope
    *out = *data; // want error:insufficient-atomic-scope
  }
}

int main() {
  int *data, *flag, *out;
  cudaMallocManaged(&data, sizeof(int));
  cudaMallocManaged(&flag, sizeof(int));
  cudaMallocManaged(&out, sizeof(int));
  *data = *flag = *out = 0;
  message<<<2, 1>>>(data, flag, out);
  cudaDeviceSynchronize();
  printf("received %d\n", *out);
}
