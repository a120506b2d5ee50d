// A waiter that an atomic of the CUDA library notifies, with relaxed order.
#include <cuda/atomic>

__global__ void k(int *data, int *flag, int *out) {
  cuda::atomic_ref<int, cuda::thread_scope_device> f(*flag);
  if (blockIdx.x == 0) {
    *data = 42; // want error:missing-fence
    f.store(1, cuda::memory_order_relaxed);
    f.notify_all();
  } else {
    f.wait(0, cuda::memory_order_relaxed);
    *out = *data; // want error:missing-fence
  }
}
