// What a program did before it was killed is kept.
// signal: killed
// launches: _Z1kPi _Z1kPi
#include <csignal>
__global__ void k(int *p) { *p = 1; }
int main() {
  int *p;
  cudaMalloc(&p, 16);
  k<<<1, 1>>>(p);
  k<<<1, 1>>>(p);
  raise(SIGKILL);
}
