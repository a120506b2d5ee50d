// stdout: ok
#include "api.h"

static char host[4096];

// The frame that counts is that of the call; a wrapper's caller stands behind it.
static void release(void *p) {
  cudaFree(p); // fails: double-free unseen
}

static void frees(void) {
  void *d, *h, *m, *q;
  OK(cudaMalloc(&d, 256));
  OK(cudaMallocHost(&h, 256));
  OK(cudaMallocManaged(&m, 256, 1));
  OK(cudaMalloc(&q, 256));
  cudaFree((char *)d + 8); // fails: invalid-free unseen
  cudaFree(h);             // fails: invalid-free unseen
  cudaFreeHost(d);         // fails: invalid-free unseen
  cudaFreeHost(m);         // fails: invalid-free unseen
  cudaFree(host);          // fails: invalid-free unseen
  cudaFreeAsync(host, 0);  // fails: invalid-free unseen
  cudaFree((void *)16);    // fails: invalid-free unseen
  OK(cudaFree(0));
  OK(cudaFreeHost(0));
  release(d);
  release(d);
  OK(cudaFree(m));
  OK(cudaFreeHost(h));
  OK(cudaFreeAsync(q, 0));
  cudaFreeAsync(q, 0);         // fails: double-free unseen
  cudaFree((char *)q + 16);    // fails: invalid-free unseen
  cudaFreeHost(h);             // fails: double-free unseen
}

static void copies(void) {
  char *d, *e, *h;
  OK(cudaMalloc((void **)&d, 256));
  OK(cudaMalloc((void **)&e, 256));
  OK(cudaMallocHost((void **)&h, 256));
  OK(cudaFree(e));
  cudaMemcpy(e, host, 16, HostToDevice);         // fails: freed-memory unseen
  cudaMemcpy(host, e + 8, 16, DeviceToHost);     // fails: freed-memory unseen
  cudaMemset(e, 0, 16);                          // fails: freed-memory unseen
  cudaMemcpy(d, host, 257, HostToDevice);        // fails: call-out-of-bounds unseen
  cudaMemcpy(d + 250, host, 7, HostToDevice);    // fails: call-out-of-bounds unseen
  cudaMemcpy(host, d + 255, 2, Default);         // fails: call-out-of-bounds unseen
  cudaMemcpyAsync(d, h, 300, Default, 0);        // fails: call-out-of-bounds unseen
  cudaMemset(d + 1, 1, 256);                     // fails: call-out-of-bounds unseen
  cudaMemset2D(d, 64, 1, 64, 5);                 // fails: call-out-of-bounds unseen
  cudaMemcpy(d, host, (size_t)-1, HostToDevice); // fails: call-out-of-bounds unseen
  cudaMemcpy2D(d, 64, host, 64, 65, 1, HostToDevice); // fails: error-ignored unseen
  cudaMemcpy(host, d, 16, HostToDevice);         // fails: wrong-direction unseen
  cudaMemcpy(d, host, 16, DeviceToHost);         // fails: wrong-direction unseen
  cudaMemcpy(host, host + 64, 16, DeviceToDevice); // fails: wrong-direction unseen
  cudaMemcpy(d, d + 64, 16, HostToHost);         // fails: wrong-direction unseen
  cudaMemcpy(d, host, 16, 7);                    // fails: wrong-direction unseen
  cudaMemcpy(d, (void *)4096, 16, HostToDevice); // fails: invalid-pointer unseen
  cudaMemcpy(0, host, 16, HostToDevice);         // fails: invalid-pointer unseen
  cudaMemcpy(host, (char *)0x100000000000, 16, Default); // fails: invalid-pointer unseen
  cudaMemset(host, 0, 16);                       // fails: invalid-pointer unseen
  cudaMemset(0, 0, 16);                          // fails: invalid-pointer unseen
  OK(cudaMemcpy(0, 0, 0, HostToDevice));
  OK(cudaMemset(0, 0, 0));
  OK(cudaMemcpy(d, h, 256, DeviceToDevice)); // pinned memory is the device's too
  OK(cudaFree(d));
  OK(cudaFreeHost(h));
}

static void handles(void) {
  stream s;
  event e, f;
  float ms;
  OK(cudaStreamCreate(&s));
  OK(cudaEventCreate(&e));
  OK(cudaEventCreate(&f));
  OK(cudaStreamDestroy(s));
  OK(cudaEventDestroy(e));
  cudaStreamSynchronize(s);         // fails: invalid-handle unseen
  cudaStreamQuery(s);               // fails: invalid-handle unseen
  cudaStreamDestroy(s);             // fails: invalid-handle unseen
  cudaEventRecord(f, s);            // fails: invalid-handle unseen
  cudaEventRecord(e, 0);            // fails: invalid-handle unseen
  cudaStreamWaitEvent(0, e, 0);     // fails: invalid-handle unseen
  cudaEventSynchronize(e);          // fails: invalid-handle unseen
  cudaEventQuery(e);                // fails: invalid-handle unseen
  cudaEventDestroy(e);              // fails: invalid-handle unseen
  cudaEventElapsedTime(&ms, f, e);  // fails: invalid-handle unseen
  cudaMemcpyAsync(host, host, 1, Default, s);  // fails: invalid-handle unseen
  cudaMemsetAsync(host, 0, 1, (stream)host);  // fails: invalid-handle unseen
  cudaEventElapsedTime(&ms, f, f);  // fails: error-ignored unseen
  cudaEventRecord(0, 0);            // fails: error-ignored unseen
}

// What programs ask for their error is no finding, nor is what they asked an error of.
static void probes(void) {
  void *p;
  attributes a;
  unsigned flags;
  int code;
  OK(cudaPointerGetAttributes(&a, host));
  cudaMalloc(&p, 1ul << 60);
  cudaMalloc(&p, (size_t)-1);
  cudaHostUnregister(host);
  cudaHostGetFlags(&flags, host);
  cudaSetDevice(3);
  cudaMalloc(0, 16);
  cudaGetLastError();
  cudaStreamCreateWithFlags(&p, 77);
  code = cudaStreamCreateWithFlags(&p, 78);
  cudaGetErrorString(code);
}

int main(void) {
  probes(); // first: what it asks for is all errors of the thread so far
  frees();
  copies();
  handles();
  puts("ok");
}
