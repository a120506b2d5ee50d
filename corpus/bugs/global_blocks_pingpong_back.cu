// Two blocks take turns; the way back has no release.
__global__ void k(int *data, int *turn) {
  for (int i = 0; i < 6; i += 2) {
    while (atomicAdd(turn, 0) != i + blockIdx.x) {}
    __threadfence();
    if (blockIdx.x == 0) {
      *data = i; // want error:missing-fence
      __threadfence();
      atomicExch(turn, i + 1);
    } else {
      if (*data != i) __trap(); // want error:missing-fence
      atomicExch(turn, i + 2);
    }
  }
}
