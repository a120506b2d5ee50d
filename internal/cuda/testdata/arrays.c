// Arrays, texture and surface objects: what they hold, what copies move, what is refused. Both APIs share the handles.
// flags: -lcuda -lcudart_static -lpthread
// stdout: ok
// unsupported: a sparse array or one with deferred mapping
#include "api.h"

typedef struct { int bits[4], format; } channel;
typedef struct { size_t width, height, depth; int format; unsigned channels, flags; } description;
typedef struct { int type, pad; union { void *array; struct { void *at; channel c; size_t size, height, pitch; } memory; int reserved[32]; }; unsigned flags; } resource;
typedef struct { int address[3], filter, as_float, srgb; float border[4]; int normalized; unsigned rest[7]; } modes;
typedef struct { size_t x, y, z, level; int type; void *host; uint64_t device; void *array, *reserved; size_t pitch, height; } side;
typedef struct { side from, to; size_t width, height, depth; } copy;

int cudaMallocArray(void **, const channel *, size_t, size_t, unsigned), cudaMalloc3DArray(void **, const channel *, extent, unsigned), cudaFreeArray(void *);
int cudaArrayGetInfo(channel *, extent *, unsigned *, void *), cudaGetChannelDesc(channel *, void *);
int cudaMemcpy2DToArray(void *, size_t, size_t, const void *, size_t, size_t, size_t, int), cudaMemcpy2DFromArray(void *, size_t, void *, size_t, size_t, size_t, size_t, int);
int cudaMemcpy2DArrayToArray(void *, size_t, size_t, void *, size_t, size_t, size_t, size_t, int), cudaMemcpyToArray(void *, size_t, size_t, const void *, size_t, int);
int cudaMemcpyFromArray(void *, void *, size_t, size_t, size_t, int);
int cudaCreateTextureObject(uint64_t *, const resource *, const modes *, const void *), cudaDestroyTextureObject(uint64_t);
int cuArray3DCreate_v2(void **, const description *), cuArray3DGetDescriptor_v2(description *, void *), cuArrayDestroy(void *), cuMemcpy3D_v2(const copy *);
int cuTexObjectCreate(uint64_t *, const resource *, const void *, const void *);
int cudaGetTextureObjectResourceDesc(resource *, uint64_t), cudaGetTextureObjectTextureDesc(modes *, uint64_t), cudaGetSurfaceObjectResourceDesc(resource *, uint64_t);
int cudaCreateSurfaceObject(uint64_t *, const resource *), cudaDestroySurfaceObject(uint64_t);

static unsigned char host[4096], back[4096];
static const channel byte4 = {{8, 8, 8, 8}, 1}, real = {{32}, 2}, word = {{32}, 0};

static void copies(void) {
  void *a, *b, *v;
  for (int i = 0; i < 4096; i++) host[i] = (unsigned char)(i * 7 + i / 256);
  OK(cudaMallocArray(&a, &byte4, 16, 8, 0));
  OK(cudaMallocArray(&b, &byte4, 16, 8, 2));
  OK(cudaMemcpy2DToArray(a, 8, 2, host, 100, 40, 5, HostToDevice)); // rows of 64 bytes
  OK(cudaMemcpy2DArrayToArray(b, 0, 1, a, 4, 1, 60, 7, DeviceToDevice));
  OK(cudaMemcpy2DFromArray(back, 64, b, 0, 0, 64, 8, DeviceToHost));
  for (int y = 0; y < 8; y++)
    for (int x = 0; x < 60; x++) {
      int i = x + 4 - 8, j = y - 2;
      TRUE(back[64 * y + x] == (i >= 0 && i < 40 && j >= 0 && j < 5 ? host[100 * j + i] : 0));
    }
  OK(cudaMemcpyToArray(a, 60, 3, host, 70, HostToDevice)); // goes on in the next rows
  OK(cudaMemcpyFromArray(back, a, 0, 4, 64, DeviceToHost));
  TRUE(!memcmp(back, host + 4, 64));
  WANT(cudaMemcpy2DToArray(a, 8, 2, host, 100, 57, 5, HostToDevice), 1);
  WANT(cudaMemcpy2DToArray(a, 8, 2, host, 100, 40, 7, HostToDevice), 1);
  WANT(cudaMemcpyToArray(a, 0, 7, host, 65, HostToDevice), 1);
  WANT(cudaMemcpy2DToArray(NULL, 0, 0, host, 100, 40, 5, HostToDevice), 400);
  OK(cudaMalloc3DArray(&v, &real, (extent){8, 4, 3}, 0));
  copy3d c = {.from = {host, 32, 8, 4}, .to_array = v, .size = {6, 3, 2}, .kind = HostToDevice};
  c.to_at[0] = 2, c.to_at[1] = 1, c.to_at[2] = 1;
  OK(cudaMemcpy3D(&c));
  copy d = {.from = {.x = 4, .type = 3, .array = v, .z = 1}, .to = {.type = 1, .host = back, .pitch = 28, .height = 4}, .width = 28, .height = 4, .depth = 2};
  OK(cuMemcpy3D_v2(&d));
  for (int z = 0; z < 2; z++)
    for (int y = 0; y < 4; y++)
      for (int x = 0; x < 28; x++)
        TRUE(back[28 * (4 * z + y) + x] == (y < 1 || x < 4 ? 0 : host[32 * (4 * z + y - 1) + x - 4]));
  d.from.z = 2, d.from.y = 1, d.height = 1, d.depth = 1; // the second slice that was written
  OK(cuMemcpy3D_v2(&d));
  TRUE(!memcmp(back + 4, host + 128, 24));
  c.size.height = 4, c.size.depth = 1;
  WANT(cudaMemcpy3D(&c), 1); // a row more would be of the next slice
  c.size.height = 3, c.size.depth = 3;
  WANT(cudaMemcpy3D(&c), 1);
  OK(cudaFreeArray(v));
  OK(cudaFreeArray(a));
  OK(cudaFreeArray(b));
  WANT(cudaMemcpy2DToArray(a, 0, 0, host, 64, 64, 8, HostToDevice), 1); // freed
  WANT(cudaFreeArray(a), 1);
  OK(cudaFreeArray(NULL));
}

static void described(void) {
  void *a;
  channel c;
  extent x;
  unsigned flags;
  description d = {9, 5, 12, 0x10, 2, 1};
  OK(cuArray3DCreate_v2(&a, &d));
  OK(cudaArrayGetInfo(&c, &x, &flags, a));
  TRUE(c.bits[0] == 16 && c.bits[1] == 16 && c.bits[2] == 0 && c.format == 2);
  TRUE(x.width == 9 && x.height == 5 && x.depth == 12 && flags == 1);
  memset(&d, 0, sizeof d);
  OK(cuArray3DGetDescriptor_v2(&d, a));
  TRUE(d.width == 9 && d.height == 5 && d.depth == 12 && d.format == 0x10 && d.channels == 2 && d.flags == 1);
  OK(cuArrayDestroy(a));
  d = (description){9, 0, 0, 9, 4, 0};
  OK(cuArray3DCreate_v2(&a, &d));
  OK(cudaGetChannelDesc(&c, a));
  TRUE(c.bits[0] == 16 && c.bits[3] == 16 && c.format == 0);
  OK(cuArrayDestroy(a));
  WANT(cudaMallocArray(&a, &real, 0, 5, 0), 1);
  WANT(cudaMalloc3DArray(&a, &real, (extent){4, 4, 13}, 5), 1);
  WANT(cudaMallocArray(&a, NULL, 5, 5, 0), 1);
  WANT(cudaMallocArray(&a, &(channel){{0}, 1}, 5, 5, 0), 20);
  WANT(cudaMallocArray(&a, &real, 5, 5, 0x40), 801);
  WANT(cudaMalloc3DArray(&a, &real, (extent){4, 5, 6}, 4), 1);
  OK(cudaMalloc3DArray(&a, &real, (extent){4, 4, 6}, 4));
  OK(cudaFreeArray(a));
}

static void objects(void) {
  void *a, *p;
  uint64_t t, s;
  OK(cudaMallocArray(&a, &word, 16, 8, 0));
  OK(cudaMalloc(&p, 1024));
  resource r = {.array = a};
  modes m = {.address = {0, 1, 2}, .border = {1, 2, 3, 4}};
  OK(cudaCreateTextureObject(&t, &r, &m, NULL));
  WANT(cudaFree((void *)t), 1);
  OK(cudaDestroyTextureObject(t));
  WANT(cudaDestroyTextureObject(t), 1);
  m.filter = 1;
  WANT(cudaCreateTextureObject(&t, &r, &m, NULL), 1); // integers are not filtered
  m.filter = 0;
  WANT(cuTexObjectCreate(&t, &r, &m, &m), 1); // which is no view of the array
  WANT(cudaCreateSurfaceObject(&s, &r), 1); // the array was not made for it
  resource l = {.type = 2, .memory = {p, {{32, 32}, 2}, 1024}};
  OK(cudaCreateTextureObject(&t, &l, &m, NULL));
  resource back_r;
  modes back_m;
  OK(cudaGetTextureObjectResourceDesc(&back_r, t));
  OK(cudaGetTextureObjectTextureDesc(&back_m, t));
  TRUE(back_r.type == 2 && back_r.memory.at == p && back_r.memory.size == 1024 && !memcmp(&back_m, &m, sizeof m));
  WANT(cudaGetTextureObjectResourceDesc(&back_r, (uint64_t)p), 1);
  OK(cudaDestroyTextureObject(t));
  WANT(cudaGetTextureObjectResourceDesc(&back_r, t), 1);
  l.memory.size = 1032;
  WANT(cudaCreateTextureObject(&t, &l, &m, NULL), 1); // beyond its end
  l.memory.size = 1024, l.memory.c.bits[2] = 32;
  WANT(cudaCreateTextureObject(&t, &l, &m, NULL), 1); // three channels
  l.memory.c.bits[2] = 0, l.memory.at = host;
  WANT(cudaCreateTextureObject(&t, &l, &m, NULL), 1); // memory of the host
  resource q = {.type = 3, .memory = {p, {{8}, 1}, 30, 8, 32}};
  OK(cudaCreateTextureObject(&t, &q, &m, NULL));
  q.memory.height = 33;
  WANT(cudaCreateTextureObject(&t, &q, &m, NULL), 1);
  OK(cudaFree(p));
  OK(cudaFreeArray(a));
  WANT(cudaCreateTextureObject(&t, &r, &m, NULL), 1);
}

int main(void) {
  copies();
  described();
  objects();
  puts("ok");
}
