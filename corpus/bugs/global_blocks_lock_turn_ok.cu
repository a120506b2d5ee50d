// Who may work on the word is a turn kept under a lock; the word itself is touched outside of it.
__global__ void k(int *x, int *turn, int *lock, int *out) {
  int now;
  do {
    while (atomicCAS(lock, 0, 1) != 0) {}
    __threadfence();
    now = *turn;
    __threadfence();
    atomicExch(lock, 0);
  } while (now != blockIdx.x);
  *x += 1;
  while (atomicCAS(lock, 0, 1) != 0) {}
  __threadfence();
  *turn = now + 1;
  __threadfence();
  atomicExch(lock, 0);
}
