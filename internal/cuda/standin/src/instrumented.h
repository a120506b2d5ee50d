// "fencepost nvcc --instrument MODE" includes this file first in each source file. The program then restarts itself
// under "fencepost run".
#ifndef __CUDA_ARCH__
extern "C" __attribute__((weak)) void fencepost_start(const char *mode);
#define FENCEPOST_TEXT(x) #x
#define FENCEPOST_TEXT_OF(x) FENCEPOST_TEXT(x)
__attribute__((constructor(101), unused)) static void fencepost_instrumented(void) {
  if (fencepost_start) fencepost_start(FENCEPOST_TEXT_OF(FENCEPOST_INSTRUMENT));
}
#undef FENCEPOST_TEXT
#undef FENCEPOST_TEXT_OF
#endif
