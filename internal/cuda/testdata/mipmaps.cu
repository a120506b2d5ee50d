// Mipmapped arrays: their levels, what fetches with a level of detail and with gradients read, and surfaces over levels.
// stdout: ok
#include <cstdio>
#include <cstdlib>
#define OK(x) do { cudaError_t e = (x); if (e) { printf("line %d: %s\n", __LINE__, cudaGetErrorName(e)); exit(1); } } while (0)
#define TRUE(x) do { if (!(x)) { printf("line %d: not so: %s\n", __LINE__, #x); exit(1); } } while (0)
#define WANT_ERROR(x, y) do { cudaError_t e = (x); if (e != (y)) { printf("line %d: %s\n", __LINE__, cudaGetErrorName(e)); exit(1); } cudaGetLastError(); } while (0)
const int W = 16, H = 8, LEVELS = 5;
// Each element of level l is 100 * l, but for the first, which is 100 * l + 7.
__global__ void fill(cudaSurfaceObject_t s, int w, int h, int l) {
  int x = threadIdx.x, y = threadIdx.y;
  if (x < w && y < h) surf2Dwrite(100.0f * l + (x == 0 && y == 0 ? 7 : 0), s, x * 4, y);
}
__global__ void levels(cudaTextureObject_t t, const float *lod, float *o) { o[threadIdx.x] = tex2DLod<float>(t, 0.99f, 0.99f, lod[threadIdx.x]); }
__global__ void first(cudaTextureObject_t t, float *o) { o[threadIdx.x] = tex2DLod<float>(t, 0, 0, threadIdx.x); }
__global__ void slopes(cudaTextureObject_t t, float *o) {
  float x = exp2f(threadIdx.x) / W;
  o[threadIdx.x] = tex2DGrad<float>(t, 0.9f, 0.9f, make_float2(x, 0), make_float2(0, 1.0f / H / 4));
}
__global__ void whole(cudaTextureObject_t t, float *o) { o[threadIdx.x] = __int_as_float(tex2DLod<int>(t, 0, 0, threadIdx.x)); }
__global__ void base(cudaTextureObject_t t, float *o) { *o = tex2D<float>(t, 0.9f, 0.9f); }
__global__ void volumes(cudaTextureObject_t t, float *o) { o[threadIdx.x] = tex3DLod<float>(t, 0.9f, 0.9f, 0.9f, threadIdx.x); }
__global__ void layers(cudaTextureObject_t t, float *o) { o[threadIdx.x] = tex1DLayeredLod<float>(t, 0.1f, threadIdx.x & 1, threadIdx.x >> 1); }
__global__ void faces(cudaTextureObject_t t, float *o) {
  o[threadIdx.x] = texCubemapLod<float>(t, threadIdx.x & 1 ? -1 : 1, 0, 0, threadIdx.x >> 1);
  float step = threadIdx.x & 2 ? 2.0f : 0.5f; // of a face of 4 elements, that is 2 wide
  o[4 + threadIdx.x] = texCubemapGrad<float>(t, threadIdx.x & 1 ? -1 : 1, 0, 0, make_float4(0, step / 2, 0, 0), make_float4(0, 0, 0, 0));
}
static cudaTextureDesc description(float most, cudaTextureFilterMode between = cudaFilterModePoint, float bias = 0, float least = 0) {
  cudaTextureDesc d = {};
  for (auto &a : d.addressMode) a = cudaAddressModeClamp;
  d.normalizedCoords = 1, d.mipmapFilterMode = between, d.maxMipmapLevelClamp = most, d.minMipmapLevelClamp = least, d.mipmapLevelBias = bias;
  return d;
}
static cudaTextureObject_t texture(cudaMipmappedArray_t m, const cudaTextureDesc &d) {
  cudaResourceDesc r = {};
  r.resType = cudaResourceTypeMipmappedArray, r.res.mipmap.mipmap = m;
  cudaTextureObject_t t;
  OK(cudaCreateTextureObject(&t, &r, &d, nullptr));
  return t;
}
static float *o, *lod;
static void expect(int line, int n, const float *want) {
  float got[16];
  OK(cudaMemcpy(got, o, n * 4, cudaMemcpyDeviceToHost));
  for (int i = 0; i < n; i++)
    if (got[i] != want[i]) printf("line %d: %d is %g, not %g\n", line, i, got[i], want[i]), exit(1);
}
#define WANT(...) do { const float want[] = {__VA_ARGS__}; expect(__LINE__, sizeof want / 4, want); } while (0)
static void set_level(cudaMipmappedArray_t m, int l, const float *from) {
  cudaArray_t a;
  cudaMemcpy3DParms c = {};
  OK(cudaGetMipmappedArrayLevel(&a, m, l));
  OK(cudaArrayGetInfo(nullptr, &c.extent, nullptr, a));
  if (!c.extent.height) c.extent.height = 1;
  if (!c.extent.depth) c.extent.depth = 1;
  c.srcPtr = make_cudaPitchedPtr((void *)from, c.extent.width * 4, c.extent.width, c.extent.height), c.dstArray = a, c.kind = cudaMemcpyHostToDevice;
  OK(cudaMemcpy3D(&c));
}
int main() {
  OK(cudaMalloc(&o, 64));
  OK(cudaMalloc(&lod, 64));
  auto real = cudaCreateChannelDesc<float>();
  cudaMipmappedArray_t m;
  cudaArray_t a;
  OK(cudaMallocMipmappedArray(&m, &real, make_cudaExtent(W, H, 0), 99, cudaArraySurfaceLoadStore)); // as many as there are
  for (int l = 0; l < LEVELS; l++) {
    OK(cudaGetMipmappedArrayLevel(&a, m, l));
    cudaExtent size;
    OK(cudaArrayGetInfo(nullptr, &size, nullptr, a));
    TRUE(size.width == (W >> l) && size.height == (H >> l ? H >> l : 1) && size.depth == 0);
    cudaResourceDesc r = {};
    r.res.array.array = a;
    cudaSurfaceObject_t s;
    OK(cudaCreateSurfaceObject(&s, &r));
    fill<<<1, dim3(W, H)>>>(s, size.width, size.height, l);
  }
  WANT_ERROR(cudaGetMipmappedArrayLevel(&a, m, LEVELS), cudaErrorInvalidValue);
  cudaTextureObject_t t = texture(m, description(LEVELS - 1));
  const float given[] = {0, 0.5f, 0.51f, 1, 2.4f, 3.6f, 9, -3};
  OK(cudaMemcpy(lod, given, sizeof given, cudaMemcpyHostToDevice));
  levels<<<1, 8>>>(t, lod, o);
  WANT(0, 0, 100, 100, 200, 407, 407, 0);
  first<<<1, 5>>>(t, o);
  WANT(7, 107, 207, 307, 407);
  slopes<<<1, 5>>>(t, o);
  WANT(0, 100, 200, 300, 407);
  levels<<<1, 8>>>(texture(m, description(3, cudaFilterModeLinear)), lod, o);
  WANT(0, 50, 51.171875f, 100, 239.84375f, 300, 300, 0); // weights have 8 bits: 131/256 and 102/256
  levels<<<1, 8>>>(texture(m, description(3, cudaFilterModePoint, 1, 2)), lod, o);
  WANT(200, 200, 200, 200, 300, 300, 300, 200);
  levels<<<1, 8>>>(texture(m, description(0)), lod, o); // as zeros of a description say
  WANT(0, 0, 0, 0, 0, 0, 0, 0);
  base<<<1, 1>>>(texture(m, description(3)), o);
  WANT(0);
  cudaTextureDesc d = description(3);
  cudaResourceDesc r = {};
  r.resType = cudaResourceTypeMipmappedArray, r.res.mipmap.mipmap = m;
  d.normalizedCoords = 0;
  WANT_ERROR(cudaCreateTextureObject(&t, &r, &d, nullptr), cudaErrorInvalidValue);
  // Views of some levels, in another format, and of some layers.
  d = description(9);
  cudaResourceViewDesc v = {}, back;
  v.format = cudaResViewFormatSignedInt1, v.width = 8, v.height = 4, v.firstMipmapLevel = 1, v.lastMipmapLevel = 2;
  d.normalizedCoords = 1;
  OK(cudaCreateTextureObject(&t, &r, &d, nullptr));
  WANT_ERROR(cudaGetTextureObjectResourceViewDesc(&back, t), cudaErrorInvalidValue);
  OK(cudaCreateTextureObject(&t, &r, &d, &v));
  OK(cudaGetTextureObjectResourceViewDesc(&back, t));
  TRUE(back.width == 8 && back.lastMipmapLevel == 2);
  whole<<<1, 4>>>(t, o);
  WANT(107, 207, 207, 207);
  v.width = 16;
  WANT_ERROR(cudaCreateTextureObject(&t, &r, &d, &v), cudaErrorInvalidValue); // which is not that of level 1
  v.width = 8, v.format = cudaResViewFormatSignedInt2;
  WANT_ERROR(cudaCreateTextureObject(&t, &r, &d, &v), cudaErrorInvalidValue);
  // Handles of the other kind.
  cudaArray_t plain;
  OK(cudaMallocArray(&plain, &real, 8, 8));
  WANT_ERROR(cudaGetMipmappedArrayLevel(&a, (cudaMipmappedArray_t)plain, 0), cudaErrorInvalidResourceHandle);
  WANT_ERROR(cudaFreeMipmappedArray((cudaMipmappedArray_t)plain), cudaErrorInvalidResourceHandle);
  WANT_ERROR(cudaFreeArray((cudaArray_t)m), cudaErrorInvalidResourceHandle);
  r.res.array.array = plain;
  WANT_ERROR(cudaCreateTextureObject(&t, &r, &d, nullptr), cudaErrorInvalidResourceHandle);
  r.resType = cudaResourceTypeArray, r.res.mipmap.mipmap = m;
  WANT_ERROR(cudaCreateTextureObject(&t, &r, &d, nullptr), cudaErrorInvalidResourceHandle);
  r.resType = cudaResourceTypeMipmappedArray;
  OK(cudaFreeArray(plain));
  OK(cudaFreeMipmappedArray(m));

  float values[6 * 16];
  cudaMipmappedArray_t v2;
  OK(cudaMallocMipmappedArray(&v2, &real, make_cudaExtent(4, 2, 4), 3));
  for (int l = 0; l < 3; l++) {
    for (int i = 0; i < 32; i++) values[i] = 1000 * l + i;
    set_level(v2, l, values);
  }
  volumes<<<1, 3>>>(texture(v2, description(2)), o);
  WANT(31, 1003, 2000);

  OK(cudaMallocMipmappedArray(&v2, &real, make_cudaExtent(4, 0, 2), 2, cudaArrayLayered));
  for (int l = 0; l < 2; l++) {
    for (int i = 0; i < 8; i++) values[i] = 1000 * l + i;
    set_level(v2, l, values);
  }
  layers<<<1, 4>>>(texture(v2, description(1)), o);
  WANT(0, 4, 1000, 1002);
  r.res.mipmap.mipmap = v2, v = {}, v.width = 4, v.firstLayer = v.lastLayer = 1;
  OK(cudaCreateTextureObject(&t, &r, &d, &v));
  layers<<<1, 4>>>(t, o); // there is one
  WANT(4, 4, 4, 4);

  OK(cudaMallocMipmappedArray(&v2, &real, make_cudaExtent(4, 4, 6), 2, cudaArrayCubemap));
  for (int l = 0; l < 2; l++) {
    for (int i = 0; i < 96; i++) values[i] = 1000 * l + i / (l ? 4 : 16);
    set_level(v2, l, values);
  }
  faces<<<1, 4>>>(texture(v2, description(1)), o);
  WANT(0, 1, 1000, 1001, 0, 1, 1000, 1001);
  puts("ok");
}
