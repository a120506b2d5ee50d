// A ticket lock whose holder passes on the turn without a fence, so its writes may come after.
#include <cstdio>

const int BLOCKS = 8;

__global__ void append(int *next, int *serving, int *list) {
  int ticket = atomicAdd(next, 1);
  while (atomicAdd(serving, 0) != ticket) {}
  __threadfence();
  int n = list[0]; // want error:missing-fence
  list[1 + n] = ticket;
  list[0] = n + 1; // want error:missing-fence
  atomicAdd(serving, 1);
}

int main() {
  int *state, *list;
  cudaMallocManaged(&state, 2 * sizeof(int));
  cudaMallocManaged(&list, (1 + BLOCKS) * sizeof(int));
  state[0] = state[1] = list[0] = 0;
  append<<<BLOCKS, 1>>>(&state[0], &state[1], list);
  cudaDeviceSynchronize();
  printf("length %d\n", list[0]);
}
