// A message by sequentially consistent accesses, as they are when nothing is said.
#include <cuda/atomic>

__global__ void k(int *data, int *flag, int *out) {
  cuda::atomic_ref<int, cuda::thread_scope_device> f(*flag);
  if (blockIdx.x == 0) {
    *data = 42;
    f = 1;
  } else {
    while (f == 0) {}
    *out = *data;
  }
}
