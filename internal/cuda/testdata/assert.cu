// ends: 710
// launches: _Z1ki
// errors: assertion
#include <cassert>
#include <cstdio>
__global__ void k(int x) { assert(x == 2); }
int main() {
  k<<<1, 1>>>(1);
  printf("%d\n", (int)cudaDeviceSynchronize());
}
