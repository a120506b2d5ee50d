// Programs built with "fencepost nvcc --instrument MODE" restart themselves under "fencepost run": see instrumented.h.
#ifndef FP_START_H
#define FP_START_H

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

// fp_arguments appends the program's arguments, without its name, to the n words of argv, which has room for max words.
static int fp_arguments(char **argv, int n, int max, char *text, size_t size) {
  FILE *f = fopen("/proc/self/cmdline", "r");
  size_t length = f ? fread(text, 1, size, f) : 0;
  if (f) fclose(f);
  if (!length || length == size || text[length - 1]) return -1;
  for (char *at = text + strlen(text) + 1; at < text + length; at += strlen(at) + 1) {
    if (n == max) return -1;
    argv[n++] = at;
  }
  return n;
}

// fencepost_start restarts the program under "fencepost run", unless it already runs there.
__attribute__((visibility("default"))) void fencepost_start(const char *mode) {
  enum { words = 1 << 16, bytes = 1 << 22 };
  static char *argv[words + 1], text[bytes], exe[4096];
  if (getenv(FP_ENV)) return;
  const char *fencepost = getenv("FENCEPOST");
  if (!fencepost || !*fencepost) fencepost = "fencepost";
  ssize_t length = readlink("/proc/self/exe", exe, sizeof exe - 1);
  char *first[] = {(char *)fencepost, "run", "--device", "auto", "--instrument", (char *)mode, exe};
  memcpy(argv, first, sizeof first);
  int n = length > 0 ? fp_arguments(argv, sizeof first / sizeof *first, words, text, bytes) : -1;
  if (n >= 0) {
    argv[n] = NULL;
    execvp(fencepost, argv);
  }
  fprintf(stderr, "%s: this program was built with \"fencepost nvcc --instrument %s\" and runs under \"%s run\", which cannot be started: %s\n"
                  "remedy: put fencepost on PATH, or its path into the variable FENCEPOST\n",
          exe, mode, fencepost, n < 0 ? "its arguments cannot be read" : strerror(errno));
  _exit(3);
}

#endif
