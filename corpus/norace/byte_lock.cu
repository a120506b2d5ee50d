// Two locks in the bytes of one word, each around a counter of its own, and a flag of two bytes beside them.
#include <cuda/atomic>
#include <cstdio>

const int BLOCKS = 4;

__global__ void count(unsigned char *locks, short *most, int *counters) {
  int k = blockIdx.x % 2;
  cuda::atomic_ref<unsigned char, cuda::thread_scope_device> lock(locks[k]);
  unsigned char free = 0;
  while (!lock.compare_exchange_weak(free, 1, cuda::memory_order_acquire)) free = 0;
  counters[k] += 1;
  lock.store(0, cuda::memory_order_release);
  cuda::atomic_ref<short, cuda::thread_scope_device>(most[0]).fetch_max(blockIdx.x, cuda::memory_order_relaxed);
  if (blockIdx.x == 0) most[1] = 5;
}

int main() {
  unsigned char *locks;
  short *most;
  int *counters;
  cudaMallocManaged(&locks, 4);
  cudaMallocManaged(&most, 2 * sizeof(short));
  cudaMallocManaged(&counters, 2 * sizeof(int));
  for (int i = 0; i < 4; i++) locks[i] = 0;
  for (int i = 0; i < 2; i++) most[i] = counters[i] = 0;
  count<<<BLOCKS, 1>>>(locks, most, counters);
  cudaDeviceSynchronize();
  printf("%d, %d, most %d, %d\n", counters[0], counters[1], most[0], most[1]);
  return counters[0] != 2 || counters[1] != 2 || most[0] != 3 || most[1] != 5;
}
