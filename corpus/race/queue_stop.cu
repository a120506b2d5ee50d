// Blocks take work from a counter until one finds what is sought. The volatile flag that stops the others orders nothing and
// need not: no fence is missing, though the counter passes from block to block.
#include <cstdio>

const int N = 64, BLOCKS = 4;

__global__ void queue_stop(const int *in, int wanted, unsigned *next, volatile int *stop, int *where) {
  while (*stop == 0) {  // want warning:volatile
    unsigned i = atomicAdd(next, 1);
    if (i >= N) return;
    if (in[i] != wanted) continue;
    *where = i;
    *stop = 1;  // want warning:volatile
  }
}

int main() {
  int *m, *in;
  cudaMallocManaged(&in, N * sizeof(int));
  cudaMallocManaged(&m, 3 * sizeof(int));
  for (int i = 0; i < N; i++) in[i] = i;
  for (int i = 0; i < 3; i++) m[i] = 0;
  queue_stop<<<BLOCKS, 1>>>(in, 20, (unsigned *)m, m + 1, m + 2);
  cudaDeviceSynchronize();
  printf("found at %d\n", m[2]);
  return m[2] != 20;
}
