// Several host threads use the device at once.
// stdout: ok
#include "api.h"
#include <pthread.h>

static void *work(void *arg) {
  long id = (long)arg;
  stream s;
  WANT(cudaGetLastError(), 0);
  OK(cudaStreamCreate(&s));
  for (int i = 0; i < 200; i++) {
    int v = (int)(id * 1000 + i), w = 0;
    int *d;
    OK(cudaMalloc((void **)&d, 64));
    OK(cudaMemcpyAsync(d, &v, 4, HostToDevice, s));
    OK(cudaMemcpyAsync(&w, d, 4, DeviceToHost, s));
    OK(cudaStreamSynchronize(s));
    TRUE(v == w);
    OK(cudaFree(d));
  }
  WANT(cudaMalloc(NULL, 1), 1); // the last error is the thread's own
  return NULL;
}

int main(void) {
  pthread_t t[4];
  for (long i = 0; i < 4; i++) pthread_create(&t[i], NULL, work, (void *)i);
  for (int i = 0; i < 4; i++) pthread_join(t[i], NULL);
  WANT(cudaGetLastError(), 0);
  puts("ok");
}
