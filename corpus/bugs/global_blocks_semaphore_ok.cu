// A binary semaphore of the CUDA library as a lock.
#include <cuda/semaphore>

__global__ void k(int *x, cuda::binary_semaphore<cuda::thread_scope_device> *sem) {
  sem->acquire();
  *x += 1;
  sem->release();
}
