// A ticket lock: whose turn it is fences before reading what the last holder left, and before passing on the turn.
#include <cstdio>

const int BLOCKS = 8;

__global__ void append(int *next, int *serving, int *list) {
  int ticket = atomicAdd(next, 1);
  while (atomicAdd(serving, 0) != ticket) {}
  __threadfence();
  int n = list[0];
  list[1 + n] = ticket;
  list[0] = n + 1;
  __threadfence();
  atomicAdd(serving, 1);
}

int main() {
  int *state, *list;
  cudaMallocManaged(&state, 2 * sizeof(int));
  cudaMallocManaged(&list, (1 + BLOCKS) * sizeof(int));
  state[0] = state[1] = list[0] = 0;
  append<<<BLOCKS, 1>>>(&state[0], &state[1], list);
  cudaDeviceSynchronize();
  int wrong = list[0] != BLOCKS;
  for (int i = 0; i < BLOCKS; i++) wrong += list[1 + i] != i;
  printf("%d wrong\n", wrong);
  return wrong != 0;
}
