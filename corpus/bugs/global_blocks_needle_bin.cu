// Thousands of atomics on 64 bins, and one plain load of one of them.
__global__ void k(int *bins, int *out) {
  int i = blockIdx.x * 256 + threadIdx.x;
  atomicAdd(bins + i * 7 % 64, 1); // want error:atomic-mixed-with-plain
  if (i == 5000) *out = bins[11]; // want error:atomic-mixed-with-plain
}
