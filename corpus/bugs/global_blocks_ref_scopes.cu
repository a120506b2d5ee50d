// Two views of one word as atomics of different scopes, of which the block's does not take in the other block.
#include <cuda/atomic>

__global__ void k(int *x) {
  if (blockIdx.x == 0)
    cuda::atomic_ref<int, cuda::thread_scope_block>(*x).fetch_add(1); // want error:insufficient-atomic-scope
  else
    cuda::atomic_ref<int, cuda::thread_scope_device>(*x).fetch_add(1); // want error:insufficient-atomic-scope
}
