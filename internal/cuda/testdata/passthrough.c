// args: one two
// stdin: some input
// stdout: [one] [two] [some input]
// stderr: to stderr
// exit: 37
#include "api.h"

int main(int argc, char **argv) {
  char line[100] = "";
  void *p;
  OK(cudaMalloc(&p, 16));
  fread(line, 1, sizeof line - 1, stdin);
  printf("[%s] [%s] [%s]\n", argv[1], argv[argc - 1], line);
  fprintf(stderr, "to stderr\n");
  return 37;
}
