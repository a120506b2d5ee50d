// What kernels read through texture objects and write through surface objects, of every kind of memory; and an array in a graph.
// stdout: ok
#include <cstdio>
#include <cstdlib>
#define OK(x) do { cudaError_t e = (x); if (e) { printf("line %d: %s\n", __LINE__, cudaGetErrorName(e)); exit(1); } } while (0)
#define TRUE(x) do { if (!(x)) { printf("line %d: not so: %s\n", __LINE__, #x); exit(1); } } while (0)
const int W = 64, H = 32;
__global__ void halfway(cudaTextureObject_t t, cudaSurfaceObject_t s) {
  int x = threadIdx.x, y = blockIdx.x;
  surf2Dwrite(tex2D<float>(t, (x + 1.0f) / W, (y + 0.5f) / H), s, x * 4, y);
}
__global__ void lines(cudaTextureObject_t t, float4 *o) { o[threadIdx.x] = tex1Dfetch<float4>(t, threadIdx.x); }
__global__ void pitched(cudaTextureObject_t t, int *o) { o[threadIdx.y * 8 + threadIdx.x] = tex2D<unsigned char>(t, threadIdx.x, threadIdx.y); }
__global__ void volume(cudaTextureObject_t t, float *o) { o[threadIdx.x] = tex3D<float>(t, threadIdx.x + 0.5f, 1.5f, 2.0f); }
__global__ void layer(cudaTextureObject_t t, float *o) { o[threadIdx.x] = tex2DLayered<float>(t, threadIdx.x + 0.5f, 0.5f, 1); }
__global__ void cube(cudaTextureObject_t t, float *o) { o[threadIdx.x] = texCubemap<float>(t, 0, threadIdx.x == 2 ? 1 : 0, threadIdx.x == 4 ? 1 : threadIdx.x == 5 ? -1 : 0); }
__global__ void copy(cudaSurfaceObject_t s, cudaSurfaceObject_t d) {
  short2 v = surf3Dread<short2>(s, threadIdx.x * 4, threadIdx.y, blockIdx.x, cudaBoundaryModeZero);
  surf3Dwrite(v, d, threadIdx.x * 4, threadIdx.y, blockIdx.x);
}
static cudaTextureObject_t texture(cudaResourceDesc &r, cudaTextureFilterMode filter, int normalized) {
  cudaTextureDesc d = {};
  d.filterMode = filter, d.normalizedCoords = normalized;
  for (auto &a : d.addressMode) a = cudaAddressModeClamp;
  cudaTextureObject_t t;
  OK(cudaCreateTextureObject(&t, &r, &d, nullptr));
  return t;
}
static cudaSurfaceObject_t surface(cudaArray_t a) {
  cudaResourceDesc r = {};
  r.res.array.array = a;
  cudaSurfaceObject_t s;
  OK(cudaCreateSurfaceObject(&s, &r));
  return s;
}
int main() {
  static float host[W * H], back[W * H];
  for (int i = 0; i < W * H; i++) host[i] = i;
  auto real = cudaCreateChannelDesc<float>();
  cudaArray_t in, out, deep;
  OK(cudaMallocArray(&in, &real, W, H));
  OK(cudaMallocArray(&out, &real, W, H, cudaArraySurfaceLoadStore));
  OK(cudaMemcpy2DToArray(in, 0, 0, host, W * 4, W * 4, H, cudaMemcpyHostToDevice));
  cudaResourceDesc r = {};
  r.res.array.array = in;
  halfway<<<H, W>>>(texture(r, cudaFilterModeLinear, 1), surface(out));
  OK(cudaMemcpy2DFromArray(back, W * 4, out, 0, 0, W * 4, H, cudaMemcpyDeviceToHost));
  for (int i = 0; i < W * H; i++) TRUE(back[i] == (i % W == W - 1 ? i : i + 0.5f));

  float *memory, *o;
  OK(cudaMalloc(&memory, 256));
  OK(cudaMalloc(&o, 512));
  OK(cudaMemcpy(memory, host, 256, cudaMemcpyHostToDevice));
  cudaResourceDesc l = {};
  l.resType = cudaResourceTypeLinear, l.res.linear.devPtr = memory, l.res.linear.desc = cudaCreateChannelDesc<float4>(), l.res.linear.sizeInBytes = 256;
  lines<<<1, 20>>>(texture(l, cudaFilterModePoint, 0), (float4 *)o);
  OK(cudaMemcpy(back, o, 320, cudaMemcpyDeviceToHost));
  for (int i = 0; i < 80; i++) TRUE(back[i] == (i < 64 ? i : 0)); // beyond the end there is 0

  unsigned char *rows, bytes[32];
  int numbers[32];
  size_t pitch;
  for (int i = 0; i < 32; i++) bytes[i] = 7 * i;
  OK(cudaMallocPitch(&rows, &pitch, 8, 4));
  OK(cudaMemcpy2D(rows, pitch, bytes, 8, 8, 4, cudaMemcpyHostToDevice));
  cudaResourceDesc p = {};
  p.resType = cudaResourceTypePitch2D, p.res.pitch2D.devPtr = rows, p.res.pitch2D.desc = cudaCreateChannelDesc<unsigned char>();
  p.res.pitch2D.width = 8, p.res.pitch2D.height = 4, p.res.pitch2D.pitchInBytes = pitch;
  pitched<<<1, dim3(8, 4)>>>(texture(p, cudaFilterModePoint, 0), (int *)o);
  OK(cudaMemcpy(numbers, o, 128, cudaMemcpyDeviceToHost));
  for (int i = 0; i < 32; i++) TRUE(numbers[i] == bytes[i]);

  for (unsigned flags : {0u, (unsigned)cudaArrayLayered, (unsigned)cudaArrayCubemap}) {
    cudaExtent size = flags & cudaArrayCubemap ? make_cudaExtent(4, 4, 6) : make_cudaExtent(8, 4, 4);
    OK(cudaMalloc3DArray(&deep, &real, size, flags));
    cudaMemcpy3DParms c = {};
    c.srcPtr = make_cudaPitchedPtr(host, size.width * 4, size.width, size.height), c.dstArray = deep, c.extent = size, c.kind = cudaMemcpyHostToDevice;
    r.res.array.array = deep;
    if (flags == 0) { // in a graph
      cudaGraph_t graph;
      cudaGraphExec_t exec;
      cudaGraphNode_t node;
      OK(cudaGraphCreate(&graph, 0));
      OK(cudaGraphAddMemcpyNode(&node, graph, nullptr, 0, &c));
      OK(cudaGraphInstantiate(&exec, graph, 0));
      OK(cudaGraphLaunch(exec, 0));
      volume<<<1, 8>>>(texture(r, cudaFilterModeLinear, 0), o);
    } else {
      OK(cudaMemcpy3D(&c));
      if (flags == cudaArrayLayered) layer<<<1, 8>>>(texture(r, cudaFilterModePoint, 0), o);
      else cube<<<1, 8>>>(texture(r, cudaFilterModePoint, 1), o);
    }
    OK(cudaMemcpy(back, o, 32, cudaMemcpyDeviceToHost));
    for (int i = 0; i < 8; i++) {
      if (flags == 0) TRUE(back[i] == 32 * 1.5f + 8 + i); // between slices 1 and 2, row 1
      if (flags == cudaArrayLayered) TRUE(back[i] == 32 + i);
      if (flags == cudaArrayCubemap && (i == 2 || i >= 4 && i < 6)) TRUE(back[i] == 16 * i + 10); // the middle of face i
    }
  }

  auto pair = cudaCreateChannelDesc<short2>();
  cudaArray_t a, b;
  cudaExtent size = make_cudaExtent(4, 3, 2);
  OK(cudaMalloc3DArray(&a, &pair, size, cudaArraySurfaceLoadStore));
  OK(cudaMalloc3DArray(&b, &pair, size, cudaArraySurfaceLoadStore));
  cudaMemcpy3DParms c = {};
  c.srcPtr = make_cudaPitchedPtr(host, 16, 4, 3), c.dstArray = a, c.extent = size, c.kind = cudaMemcpyHostToDevice;
  OK(cudaMemcpy3D(&c));
  copy<<<2, dim3(4, 3)>>>(surface(a), surface(b));
  c = {};
  c.srcArray = b, c.dstPtr = make_cudaPitchedPtr(back, 16, 4, 3), c.extent = size, c.kind = cudaMemcpyDeviceToHost;
  OK(cudaMemcpy3D(&c));
  for (int i = 0; i < 24; i++) TRUE(back[i] == host[i]);
  puts("ok");
}
