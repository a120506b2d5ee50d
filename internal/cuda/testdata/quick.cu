// exit: 3
// launches: _Z1kPi
#include <unistd.h>
__global__ void k(int *p) { *p = 1; }
int main() {
  int *p;
  cudaMalloc(&p, 16);
  k<<<1, 1>>>(p);
  _exit(3);
}
