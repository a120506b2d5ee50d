// Two blocks count in one word, each atomically for its own block only.
#include <cstdio>

__global__ void atomic_scope(int *count) {
  if (threadIdx.x == 0) atomicAdd_block(count, 1); // want error:insufficient-atomic-scope
}

int main() {
  int *m;
  cudaMallocManaged(&m, 1 * sizeof(int));
  for (int i = 0; i < 1; i++) m[i] = 0;
  atomic_scope<<<2, 1>>>(m);
  cudaDeviceSynchronize();
  printf("count %d\n", m[0]);
}
