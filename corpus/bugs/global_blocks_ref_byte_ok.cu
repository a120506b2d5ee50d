// Atomic views of the bytes of one word, which the library makes of compare-and-swaps on the word.
#include <cuda/atomic>

__global__ void k(unsigned char *x) {
  cuda::atomic_ref<unsigned char, cuda::thread_scope_device>(x[blockIdx.x]).fetch_add(1, cuda::memory_order_relaxed);
}
