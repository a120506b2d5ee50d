// The printf buffer keeps the newest lines, whole, and as many as the program asks for.
// stdout: 17848 lines, the first whole, the last 39999
// stdout: 40000 lines, the first whole, the last 39999
// launches: _Z1ki _Z1ki
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <unistd.h>
__global__ void k(int n) {
  // 940 bytes a line: 40000 of them are more than twice the 16 MiB that are kept.
  for (int i = 0; i < n; i++) printf("begin%930d end\n", i);
}
int main() {
  for (int turn = 0; turn < 2; turn++) {
    if (turn) cudaDeviceSetLimit(cudaLimitPrintfFifoSize, 64 << 20);
    char name[] = "/tmp/printlost-XXXXXX";
    int old = dup(1), to = mkstemp(name);
    dup2(to, 1);
    k<<<1, 1>>>(40000);
    cudaDeviceSynchronize();
    fflush(stdout);
    dup2(old, 1);
    FILE *f = fopen(name, "r");
    char line[2000];
    int lines = 0, whole = 0, last = -1;
    while (fgets(line, sizeof line, f)) {
      if (lines++ == 0) whole = !strncmp(line, "begin", 5);
      last = atoi(line + 5);
    }
    unlink(name);
    printf("%d lines, the first %s, the last %d\n", lines, whole ? "whole" : "cut", last);
    fflush(stdout);
  }
}
