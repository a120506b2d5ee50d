// Two blocks take turns, each handing the word back.
__global__ void k(int *data, int *turn) {
  for (int i = 0; i < 3; i++) {
    while (atomicAdd(turn, 0) != 2 * i + blockIdx.x) {}
    __threadfence();
    *data += 1;
    __threadfence();
    atomicAdd(turn, 1);
  }
}
