// A release store and an acquire load of device scope need no separate fence.
#include <cuda/atomic>
#include <cstdio>

__global__ void message(int *data, int *flag, int *out) {
  if (blockIdx.x == 0) {
    *data = 42;
    cuda::atomic_ref<int, cuda::thread_scope_device>(*flag).store(1, cuda::memory_order_release);
  } else {
    while (cuda::atomic_ref<int, cuda::thread_scope_device>(*flag).load(cuda::memory_order_acquire) == 0) {}
    *out = *data;
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
  return *out != 42;
}
