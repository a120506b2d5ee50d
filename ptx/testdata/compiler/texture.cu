// Textures, surfaces, local arrays, wide vectors and a kernel that nothing calls.
__device__ __noinline__ void spill(float *a, int n) {
    float local[64];
    for (int i = 0; i < n; i++) local[(i * 7) & 63] = a[i];
    for (int i = 0; i < n; i++) a[i] = local[(i * 5) & 63];
}

__global__ void sample(cudaTextureObject_t tex, cudaSurfaceObject_t surf, float4 *out, int w) {
    int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y;
    float4 v = tex2D<float4>(tex, x + 0.5f, y + 0.5f);
    v.x += tex1Dfetch<float>(tex, x) + tex3D<float>(tex, x, y, 1.0f);
    float4 s;
    surf2Dread(&s, surf, x * 16, y);
    surf2Dwrite(v, surf, x * 16, y);
    out[y * w + x] = make_float4(v.x + s.x, v.y * s.y, v.z - s.z, fminf(v.w, s.w));
    spill((float *)out, w);
}

template <typename T, int N> struct Block { T v[N]; };

template <typename T, int N> __global__ void copy(Block<T, N> b, T *out) {
    for (int i = 0; i < N; i++) out[i] = b.v[i];
}
template __global__ void copy<char, 3>(Block<char, 3>, char *);
template __global__ void copy<double, 5>(Block<double, 5>, double *);
template __global__ void copy<long long, 2>(Block<long long, 2>, long long *);

__global__ void wide(ulonglong2 *a, uchar4 *b, short2 *c, bool *d) {
    a[0] = make_ulonglong2(a[1].y, a[1].x);
    b[0] = make_uchar4(b[1].w, b[1].z, 255, 0);
    c[0] = make_short2(c[1].y, -1);
    d[0] = !d[1];
}

__global__ void nothing() {}
