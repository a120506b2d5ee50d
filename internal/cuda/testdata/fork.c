// A forked child has no device, and must not disturb its parent's.
// stdout: ok
#include "api.h"
#include <sys/wait.h>

int main(void) {
  void *p, *q;
  int status;
  OK(cudaMalloc(&p, 16));
  pid_t child = fork();
  if (child == 0) {
    WANT(cudaMalloc(&q, 16), 3);
    WANT(cudaDeviceSynchronize(), 3);
    exit(5); // with its atexit handlers
  }
  waitpid(child, &status, 0);
  TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 5);
  OK(cudaMalloc(&q, 16));
  OK(cudaMemset(p, 1, 16));
  OK(cudaFree(p));
  puts("ok");
}
