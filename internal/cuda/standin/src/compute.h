// compute.h: the common part of the stand-ins for libraries that compute. Each function reports to the checker the
// memory that it reads and writes, as an operation of its stream, and computes on the host.
#ifndef FP_COMPUTE_H
#define FP_COMPUTE_H

#include <math.h>
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define EXPORT __attribute__((visibility("default")))
typedef uint64_t u64;
typedef uint32_t u32;

// Declared in libcuda.so.1.
typedef char *(*fp_locate)(u64 address); // returns where the host may access device memory
extern int fencepostCompute(const char *name, void *stream, const u64 *boxes, size_t n, void (*compute)(void *, fp_locate), void *data);
extern int cuStreamSynchronize(void *stream);

// A set of boxes of memory: columns of a number of bytes, at a pitch.
struct boxes {
  u64 word[7 * 8];
  size_t count;
};

static void touches(struct boxes *b, int write, const void *p, u64 bytes, u64 pitch, u64 columns) {
  u64 *w = b->word + 7 * b->count++;
  w[0] = (u64)write, w[1] = (u64)p, w[2] = w[3] = pitch, w[4] = bytes, w[5] = columns, w[6] = 1;
}

// touches_vector is touches for n elements with a distance of step elements.
__attribute__((unused)) static void touches_vector(struct boxes *b, int write, const void *p, u64 size, long n, long step) {
  u64 apart = (u64)(step < 0 ? -step : step);
  if (n <= 0) return;
  if (apart <= 1)
    touches(b, write, p, apart ? (u64)n * size : size, (u64)n * size, 1);
  else
    touches(b, write, p, size, apart * size, (u64)n);
}

#endif
