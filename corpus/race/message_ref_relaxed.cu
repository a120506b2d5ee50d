// The flag is atomic and of device scope, but relaxed: it says nothing about the data.
#include <cuda/atomic>
#include <cstdio>

__global__ void message(int *data, int *flag, int *out) {
  if (blockIdx.x == 0) {
    *data = 42; // want error:missing-fence
    cuda::atomic_ref<int, cuda::thread_scope_device>(*flag).store(1, cuda::memory_order_relaxed);
  } else {
    while (cuda::atomic_ref<int, cuda::thread_scope_device>(*flag).load(cuda::memory_order_relaxed) == 0) {}
    *out = *data; // want error:missing-fence
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
