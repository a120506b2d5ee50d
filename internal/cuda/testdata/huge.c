// stdout: ok
// Sizes that overflow or that no device has are refused, and large ones that nobody touches cost nothing.
#include "api.h"
#include <time.h>

static const size_t G = 1ul << 30;

static void refused(void) {
  void *p = 0, *q;
  pitched box;
  size_t pitch;
  const size_t sizes[] = {-1ul, -2ul, -512ul, -4096ul, 1ul << 63, (1ul << 63) - 1, (1ul << 63) + 1, 1ul << 62, 1ul << 48, 1ul << 47, 1ul << 40};
  for (int i = 0; i < (int)(sizeof sizes / sizeof *sizes); i++) {
    size_t n = sizes[i];
    WANT(cudaMalloc(&p, n), 2);
    WANT(cudaMallocHost(&p, n), 2);
    WANT(cudaMallocManaged(&p, n, 1), 2);
    WANT(cudaMallocAsync(&p, n, 0), 2);
    TRUE(cudaHostRegister((void *)4096, n, 0) != 0);
    TRUE(cudaMallocPitch(&p, &pitch, n, 1) != 0);
    TRUE(cudaMallocPitch(&p, &pitch, 1, n) != 0);
    TRUE(cudaMallocPitch(&p, &pitch, n, n) != 0);
    TRUE(cudaMalloc3D(&box, (extent){n, n, n}) != 0);
    TRUE(cudaMalloc3D(&box, (extent){1, n, n}) != 0);
    TRUE(cudaMalloc3D(&box, (extent){1, 2, n}) != 0);
    TRUE(p == 0);
  }
  OK(cudaMalloc(&p, 4096));
  OK(cudaMalloc(&q, 4096));
  for (int i = 0; i < (int)(sizeof sizes / sizeof *sizes); i++) {
    size_t n = sizes[i];
    TRUE(cudaMemset(p, 1, n) != 0);
    TRUE(cudaMemcpy(p, q, n, DeviceToDevice) != 0);
    TRUE(cudaMemcpy(q, (char *)p + 4095, n, Default) != 0);
    TRUE(cudaMemset2D(p, n, 1, 16, 2) != 0);
    TRUE(cudaMemset2D(p, 16, 1, 16, n) != 0);
    TRUE(cudaMemset2D(p, n, 1, n, n) != 0);
    TRUE(cudaMemset3D((pitched){p, 16, 16, n}, 1, (extent){16, 1, 2}) != 0);
    TRUE(cudaMemset3D((pitched){p, n, 16, 16}, 1, (extent){16, 2, 2}) != 0);
    TRUE(cudaMemcpy2D(p, n, q, n, 16, 2, DeviceToDevice) != 0);
    TRUE(cudaMemcpy2D(p, 16, q, 16, 16, n, DeviceToDevice) != 0);
  }
  OK(cudaFree(p));
  OK(cudaFree(q));
}

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static void sparse(void) {
  char *p, *q, b[16];
  size_t room, all;
  OK(cudaMemGetInfo(&room, &all));
  size_t most = all - (4 << 20), half = most / 2 - 4096;
  for (int i = 0; i < 20; i++) {
    OK(cudaMalloc((void **)&p, most));
    OK(cudaMemcpy(b, p + most - 16, 16, Default));
    for (int j = 0; j < 16; j++) TRUE(b[j] == 0);
    OK(cudaMemset(p + most - 16, 7, 16));
    OK(cudaMemset(p + 5, 7, 16));
    OK(cudaMemset(p + 1, 0, most - 9)); // of what it clears, the first bytes and the last share pages with others
    OK(cudaMemcpy(b, p, 16, Default));
    TRUE(b[0] == 0 && b[5] == 0);
    OK(cudaMemcpy(b, p + most - 16, 16, Default));
    TRUE(b[7] == 0 && b[8] == 7 && b[15] == 7);
    OK(cudaFree(p));
  }
  for (int i = 0; i < 3; i++) {
    OK(cudaMalloc((void **)&p, half));
    OK(cudaMalloc((void **)&q, half));
    OK(cudaMemset(q + half / 3, 9, 16)); // where the source has a hole
    OK(cudaMemset(p + half / 2 + 1, 3, 16));
    OK(cudaMemset(p + half - 1, 4, 1));
    OK(cudaMemcpy(q, p, half, DeviceToDevice));
    OK(cudaMemcpy(b, q + half / 3, 16, Default));
    TRUE(b[0] == 0 && b[15] == 0);
    OK(cudaMemcpy(b, q + half / 2, 16, Default));
    TRUE(b[0] == 0 && b[1] == 3 && b[15] == 3);
    OK(cudaMemcpy(b, q + half - 2, 2, Default));
    TRUE(b[0] == 0 && b[1] == 4);
    OK(cudaFree(p));
    OK(cudaFree(q));
  }
}

int main(void) {
  refused();
  double t = now();
  sparse();
  TRUE(now() - t < 20); // to clear it all takes longer
  puts("ok");
}
