// A sequence lock whose data are read and written atomically: what a reader reads too early it reads again.
#include <cstdio>

const int BLOCKS = 5;

__global__ void seqlock(int *data, unsigned *number, int *seen, int *out) {
  if (blockIdx.x == 0) {
    while (atomicAdd(seen, 0) < BLOCKS - 1) {} // all readers have begun
    atomicAdd(number, 1);
    __threadfence();
    atomicExch(&data[0], 7);
    atomicExch(&data[1], 7);
    __threadfence();
    atomicAdd(number, 1);
  } else {
    int first, second, tries = 0;
    unsigned before;
    do {
      before = atomicAdd(number, 0);
      __threadfence();
      if (tries++ == 0) atomicAdd(seen, 1);
      first = atomicAdd(&data[0], 0);
      second = atomicAdd(&data[1], 0);
      __threadfence();
    } while (before % 2 || before != atomicAdd(number, 0) || first == 0);
    out[blockIdx.x] = first - second;
  }
}

int main() {
  int *data, *seen, *out;
  unsigned *number;
  cudaMallocManaged(&data, 2 * sizeof(int));
  cudaMallocManaged(&number, sizeof(unsigned));
  cudaMallocManaged(&seen, sizeof(int));
  cudaMallocManaged(&out, BLOCKS * sizeof(int));
  data[0] = data[1] = *number = *seen = 0;
  seqlock<<<BLOCKS, 1>>>(data, number, seen, out);
  cudaDeviceSynchronize();
  printf("differ by %d\n", out[1]);
  return out[1] != 0 || out[2] != 0;
}
