// The first of two blocks gives a lock back without a fence.
#include <cstdio>

__device__ void lock(int *mutex) {
  while (atomicCAS(mutex, 0, 1) != 0) {}
  __threadfence();
}

__device__ void unlock(int *mutex) {
  __threadfence();
  atomicExch(mutex, 0);
}

__global__ void lock_no_release(int *mutex, int *turn, volatile int *balance) {
  if (blockIdx.x == 0) {
    lock(mutex);
    *balance += 1; // want error:missing-fence
    atomicExch(mutex, 0);
    atomicExch(turn, 1);
  } else {
    while (atomicAdd(turn, 0) == 0) {}
    lock(mutex);
    *balance += 2; // want error:missing-fence
    unlock(mutex);
  }
}

int main() {
  int *m;
  cudaMallocManaged(&m, 3 * sizeof(int));
  for (int i = 0; i < 3; i++) m[i] = 0;
  lock_no_release<<<2, 1>>>(m, m + 1, m + 2);
  cudaDeviceSynchronize();
  printf("balance %d\n", m[2]);
}
