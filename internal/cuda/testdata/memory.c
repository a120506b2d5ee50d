// stdout: ok
#include "api.h"

typedef struct { int type, id; } location;
int cudaMemPrefetchAsync_v2(const void *, size_t, location, unsigned, stream);

static unsigned char host[4096], back[4096];

static void fresh(void) {
  for (int i = 0; i < 4096; i++) host[i] = (unsigned char)(i * 7 + 3);
  memset(back, 0, sizeof back);
}

static void linear(void) {
  void *d, *e;
  fresh();
  OK(cudaMalloc(&d, 4096));
  OK(cudaMalloc(&e, 4096));
  TRUE(((uintptr_t)d & 255) == 0 && d != e);
  OK(cudaMemcpy(d, host, 4096, HostToDevice));
  OK(cudaMemcpy(e, d, 4096, DeviceToDevice));
  OK(cudaMemcpy(back, e, 4096, DeviceToHost));
  TRUE(!memcmp(host, back, 4096));
  OK(cudaMemset((char *)e + 10, 0x5a, 20));
  OK(cudaMemcpy(back, e, 64, Default));
  TRUE(back[9] == host[9] && back[10] == 0x5a && back[29] == 0x5a && back[30] == host[30]);
  WANT(cudaMemcpy(d, host, 4097, HostToDevice), 1);
  WANT(cudaMemcpy((char *)d + 4090, host, 7, HostToDevice), 1);
  WANT(cudaMemcpy(back, host, 16, DeviceToHost), 1);
  WANT(cudaMemcpy(d, host, 16, 7), 21);
  OK(cudaMemcpy(d, host, 0, HostToDevice));
  OK(cudaFree(d));
  WANT(cudaMemcpy(d, host, 16, HostToDevice), 1);
  WANT(cudaFree(d), 1);
  OK(cudaFree(e));
  OK(cudaFree(NULL));
  WANT(cudaFree(host), 1);
  WANT(cudaMalloc(NULL, 16), 1);
  WANT(cudaMalloc(&d, 1ul << 50), 2);
}

static void visible(void) {
  char *p;
  void *q;
  unsigned flags;
  attributes a;
  OK(cudaMallocManaged((void **)&p, 8192, 1));
  strcpy(p, "managed");
  OK(cudaMemcpy(back, p, 8, Default));
  TRUE(!strcmp((char *)back, "managed"));
  OK(cudaPointerGetAttributes(&a, p + 5));
  TRUE(a.type == 3 && a.device == 0 && a.on_device == p + 5 && a.on_host == p + 5);
  OK(cudaMemPrefetchAsync_v2(p, 8192, (location){1, 0}, 0, NULL));
  OK(cudaMemAdvise(p, 8192, 1, 0));
  OK(cudaFree(p));
  WANT(cudaMallocManaged((void **)&p, 16, 9), 1);
  OK(cudaHostAlloc((void **)&p, 100, 2));
  p[99] = 1;
  OK(cudaHostGetFlags(&flags, p));
  TRUE(flags == 2);
  OK(cudaHostGetDevicePointer(&q, p, 0));
  TRUE(q == p);
  WANT(cudaFree(p), 1);
  OK(cudaFreeHost(p));
  OK(cudaMallocHost((void **)&p, 100));
  OK(cudaPointerGetAttributes(&a, p));
  TRUE(a.type == 1 && a.on_host == p);
  OK(cudaFreeHost(p));
  OK(cudaPointerGetAttributes(&a, host));
  TRUE(a.type == 0 && a.on_device == NULL);
}

static void registered(void) {
  char *p = malloc(100000);
  void *q;
  for (int i = 0; i < 100000; i++) p[i] = (char)i;
  OK(cudaHostRegister(p, 100000, 0));
  for (int i = 0; i < 100000; i++) TRUE(p[i] == (char)i);
  OK(cudaHostGetDevicePointer(&q, p, 0));
  TRUE(q == p);
  p[500] = 77;
  WANT(cudaHostRegister(p + 10, 10, 0), 712);
  OK(cudaHostUnregister(p));
  TRUE(p[500] == 77 && p[99999] == (char)99999);
  WANT(cudaHostUnregister(p), 713);
  WANT(cudaHostGetDevicePointer(&q, p, 0), 1);
  free(p);
}

static void boxes(void) {
  char *d;
  size_t pitch;
  fresh();
  OK(cudaMallocPitch((void **)&d, &pitch, 100, 10));
  TRUE(pitch >= 100 && pitch % 256 == 0);
  OK(cudaMemset2D(d, pitch, 1, 100, 10));
  OK(cudaMemcpy2D(d + pitch, pitch, host, 50, 40, 5, HostToDevice));
  OK(cudaMemcpy2D(back, 100, d, pitch, 100, 10, DeviceToHost));
  TRUE(back[0] == 1 && back[99] == 1 && back[100] == host[0] && back[139] == host[39] && back[140] == 1);
  TRUE(back[500] == host[200] && back[600] == 1 && back[999] == 1);
  WANT(cudaMemcpy2D(d, pitch, host, 30, 40, 5, HostToDevice), 12);
  WANT(cudaMemcpy2D(d, pitch, host, 50, 40, 11, HostToDevice), 1);
  OK(cudaFree(d));

  pitched p;
  OK(cudaMalloc3D(&p, (extent){20, 4, 3}));
  OK(cudaMemset3D(p, 9, (extent){20, 4, 3}));
  copy3d c = {.from = {host, 10, 10, 2}, .to = p, .to_at = {5, 1, 1}, .size = {10, 2, 2}, .kind = HostToDevice};
  OK(cudaMemcpy3D(&c));
  copy3d r = {.from = p, .to = {back, 20, 20, 4}, .size = {20, 4, 3}, .kind = DeviceToHost};
  OK(cudaMemcpy3D(&r));
  TRUE(back[0] == 9 && back[80 + 20 + 5] == host[0] && back[80 + 20 + 14] == host[9] && back[80 + 20 + 15] == 9);
  TRUE(back[80 + 40 + 5] == host[10] && back[160 + 20 + 5] == host[20] && back[160 + 60] == 9);
  OK(cudaFree(p.at));
}

static void ordered(void) {
  void *d, *pool;
  stream s;
  fresh();
  OK(cudaStreamCreate(&s));
  OK(cudaMallocAsync(&d, 256, s));
  OK(cudaMemcpyAsync(d, host, 256, HostToDevice, s));
  OK(cudaMemsetAsync(d, 4, 8, s));
  OK(cudaMemcpyAsync(back, d, 256, DeviceToHost, s));
  OK(cudaStreamSynchronize(s));
  TRUE(back[7] == 4 && back[8] == host[8]);
  OK(cudaFreeAsync(d, s));
  WANT(cudaFreeAsync(d, s), 1);
  OK(cudaDeviceGetDefaultMemPool(&pool, 0));
  uint64_t all = ~0ul, got = 0;
  OK(cudaMemPoolSetAttribute(pool, 4, &all));
  OK(cudaMemPoolGetAttribute(pool, 4, &got));
  TRUE(got == all);
  OK(cudaDeviceGetGraphMemAttribute(0, 1, &got));
  TRUE(got == 0);
  OK(cudaDeviceSetGraphMemAttribute(0, 1, &got));
  OK(cudaMallocFromPoolAsync(&d, 256, pool, s));
  OK(cudaFreeAsync(d, s));
  OK(cudaStreamDestroy(s));
}

int main(void) {
  size_t before, after, total;
  OK(cudaMemGetInfo(&before, &total));
  linear();
  visible();
  registered();
  boxes();
  ordered();
  OK(cudaMemGetInfo(&after, &total));
  TRUE(before == after && total >= before);
  puts("ok");
}
