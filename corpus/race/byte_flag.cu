// A flag of one byte that is set by a relaxed store: it does not publish the data.
#include <cuda/atomic>
#include <cstdio>

__global__ void message(int *data, unsigned char *bytes, int *out) {
  cuda::atomic_ref<unsigned char, cuda::thread_scope_device> flag(bytes[1]);
  if (blockIdx.x == 0) {
    *data = 42; // want error:missing-fence
    flag.store(1, cuda::memory_order_relaxed);
  } else {
    bytes[2] = 7;
    while (flag.load(cuda::memory_order_acquire) == 0) {}
    *out = *data; // want error:missing-fence
  }
}

int main() {
  int *data, *out;
  unsigned char *bytes;
  cudaMallocManaged(&data, sizeof(int));
  cudaMallocManaged(&bytes, 4);
  cudaMallocManaged(&out, sizeof(int));
  *data = *out = 0;
  bytes[0] = bytes[1] = bytes[2] = bytes[3] = 0;
  message<<<2, 1>>>(data, bytes, out);
  cudaDeviceSynchronize();
  printf("received %d, %d\n", *out, bytes[2]);
  return *out != 42 || bytes[2] != 7;
}
