// Without the checker there is no device, and nothing crashes.
// alone: yes
// stdout: ok
#include "api.h"

int main(void) {
  int n = 7, v = 7;
  void *p;
  WANT(cudaGetDeviceCount(&n), 100);
  TRUE(n == 0);
  WANT(cudaMalloc(&p, 16), 100);
  WANT(cudaMemcpy(&n, &v, 4, Default), 100);
  WANT(cudaDeviceSynchronize(), 100);
  WANT(cudaStreamCreate(&p), 100);
  WANT(cudaGraphCreate(&p, 0), 100);
  WANT(cudaGetLastError(), 100);
  OK(cudaDriverGetVersion(&v));
  TRUE(v == 0);
  puts("ok");
}
