// Processes that fork before they use the device have one each.
// stdout: ok
#include "api.h"
#include <sys/wait.h>

int main(void) {
  void *p;
  int status;
  for (int i = 0; i < 4; i++)
    if (fork() == 0) {
      int v = 0;
      OK(cudaMalloc(&p, 4096));
      OK(cudaMemset(p, i, 4));
      OK(cudaMemcpy(&v, p, 4, DeviceToHost));
      TRUE(v == 0x01010101 * i);
      _exit(i);
    }
  int sum = 0;
  for (int i = 0; i < 4; i++) {
    wait(&status);
    TRUE(WIFEXITED(status));
    sum += WEXITSTATUS(status);
  }
  TRUE(sum == 6);
  OK(cudaMalloc(&p, 4096));
  puts("ok");
}
