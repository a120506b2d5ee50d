// Beyond ScoRD: a volatile word between two blocks; the sender has a fence, the receiver none.
#include <cstdio>

__global__ void beyond_receiver(volatile int *data, int *flag, int *out) {
  if (blockIdx.x == 0) {
    *data = 42; // want error:missing-fence
    __threadfence();
    atomicExch(flag, 1);
  } else {
    while (atomicAdd(flag, 0) == 0) {}
    *out = *data; // want error:missing-fence
  }
}

int main() {
  int *m;
  cudaMallocManaged(&m, 3 * sizeof(int));
  for (int i = 0; i < 3; i++) m[i] = 0;
  beyond_receiver<<<2, 1>>>(m, m + 1, m + 2);
  cudaDeviceSynchronize();
  printf("out %d\n", m[2]);
}
