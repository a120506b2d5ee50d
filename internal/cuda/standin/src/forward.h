// forward.h: a library that is loaded in place of NVIDIA's library of the same name. It passes calls on to that
// library, and changes some results. The environment variable REAL_ENV names the real library. It is loaded only if a
// caller needs it.
#ifndef FP_FORWARD_H
#define FP_FORWARD_H

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <dlfcn.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define EXPORT __attribute__((visibility("default")))

// fp_real finds a function of the real library at its first call by FP_CALL or FORWARD. If the library lacks the
// function, the call returns FP_ABSENT, the API's error for an unknown call.
static void *fp_library;
static pthread_once_t fp_library_once = PTHREAD_ONCE_INIT;

static int fp_absent(void) { return FP_ABSENT; }

static void fp_open_real(void) {
  const char *path = getenv(REAL_ENV);
  if (path && *path) fp_library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (!fp_library) fprintf(stderr, "fencepost: %s names no library that can be loaded: %s\n", REAL_ENV, path ? path : "it is not set");
}

__attribute__((used)) static void *fp_real(const char *name) {
  pthread_once(&fp_library_once, fp_open_real);
  void *f = fp_library ? dlsym(fp_library, name) : NULL;
  return f ? f : (void *)fp_absent;
}

// FP_CALL calls a function of the real library that returns an int.
#define FP_CALL(name, type, ...) (((int (*)type)fp_real(name))(__VA_ARGS__))

// FORWARD defines a function that jumps to the real one. Registers and stack are unchanged.
#define FORWARD(name)                                                                                                          \
  __attribute__((used)) static const char text_##name[] __asm__("text_" #name) = #name;                                        \
  __attribute__((naked)) EXPORT void name(void) {                                                                              \
    __asm__("push %rdi; push %rsi; push %rdx; push %rcx; push %r8; push %r9; sub $8, %rsp\n\t"                                 \
            "lea text_" #name "(%rip), %rdi\n\tcall fp_real\n\t"                                                               \
            "add $8, %rsp; pop %r9; pop %r8; pop %rcx; pop %rdx; pop %rsi; pop %rdi\n\tjmp *%rax");                            \
  }

#endif
