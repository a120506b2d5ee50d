// A ticket lock whose holder is told by a volatile variable. The counter of tickets hands nothing over.
__global__ void k(int *x, int *ticket, volatile int *serving) {
  for (int i = 0; i < 3; i++) {
    int mine = atomicAdd(ticket, 1);
    while (*serving != mine) {} // want warning:volatile
    __threadfence();
    *x += 1;
    __threadfence();
    *serving = mine + 1; // want warning:volatile
  }
}
