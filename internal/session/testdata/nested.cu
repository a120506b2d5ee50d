// Kernels that launch kernels (CUDA dynamic parallelism), each case in a namespace: go launches, right says whether element i of the
// 128 that the two buffers hold together is as it must be. The argument of main is the name of a case.
#include <cstdio>
#include <cstring>

namespace sync_ok {
__global__ void child(int *x, int *y) { y[threadIdx.x] = x[63 - threadIdx.x]; }
__global__ void parent(int *x, int *y) { x[threadIdx.x] = threadIdx.x; __syncthreads(); if (threadIdx.x == 0) child<<<1, 64>>>(x, y); }
void go(int *x, int *y) { parent<<<1, 64>>>(x, y); }
bool right(const int *h, int i) { return h[64+i] == 63 - i; }
}

namespace nosync {
__global__ void child(int *x, int *y) { y[threadIdx.x] = x[63 - threadIdx.x]; }
__global__ void parent(int *x, int *y) { x[threadIdx.x] = threadIdx.x; if (threadIdx.x == 0) child<<<1, 64>>>(x, y); }
void go(int *x, int *y) { parent<<<1, 64>>>(x, y); }
bool right(const int *h, int i) { return 1; }
}

namespace after {
__global__ void child(int *x, int *y) { y[threadIdx.x] = x[63 - threadIdx.x]; }
__global__ void parent(int *x, int *y) { x[threadIdx.x] = threadIdx.x; __syncthreads(); if (threadIdx.x == 0) { child<<<1, 64>>>(x, y); x[3] = 9; } }
void go(int *x, int *y) { parent<<<1, 64>>>(x, y); }
bool right(const int *h, int i) { return 1; }
}

namespace own {
__global__ void child(int *x, int *y) { y[threadIdx.x] = *x; }
__global__ void parent(int *x, int *y) { if (threadIdx.x == 0) { x[0] = 5; child<<<1, 64>>>(x, y); } }
void go(int *x, int *y) { parent<<<1, 64>>>(x, y); }
bool right(const int *h, int i) { return h[64+i] == 5; }
}

namespace two_null {
__global__ void c1(int *x) { x[threadIdx.x] = threadIdx.x; }
__global__ void c2(int *x, int *y) { y[threadIdx.x] = x[63 - threadIdx.x]; }
__global__ void parent(int *x, int *y) { if (threadIdx.x == 0) { c1<<<1, 64>>>(x); c2<<<1, 64>>>(x, y); } }
void go(int *x, int *y) { parent<<<1, 64>>>(x, y); }
bool right(const int *h, int i) { return h[64+i] == 63 - i; }
}

namespace two_threads_null {
__global__ void c1(int *x) { x[threadIdx.x]++; }
__global__ void parent(int *x, int *y) { if (threadIdx.x % 32 == 0) { c1<<<1, 64>>>(x); } }
void go(int *x, int *y) { parent<<<1, 64>>>(x, y); }
bool right(const int *h, int i) { return h[i] == 2; }
}

namespace two_blocks {
__global__ void c1(int *x) { x[threadIdx.x]++; }
__global__ void parent(int *x, int *y) { if (threadIdx.x == 0) { c1<<<1, 64>>>(x); } }
void go(int *x, int *y) { parent<<<2, 64>>>(x, y); }
bool right(const int *h, int i) { return 1; }
}

namespace forget {
__global__ void c1(int *x) { x[threadIdx.x]++; }
__global__ void parent(int *x, int *y) { if (threadIdx.x == 0) { c1<<<1, 64, 0, cudaStreamFireAndForget>>>(x); c1<<<1, 64, 0, cudaStreamFireAndForget>>>(x);} }
void go(int *x, int *y) { parent<<<1, 64>>>(x, y); }
bool right(const int *h, int i) { return 1; }
}

namespace tail {
__global__ void c1(int *x) { x[threadIdx.x + 32 * blockIdx.x] = 7; }
__global__ void c2(int *x, int *y) { y[threadIdx.x] = x[63 - threadIdx.x]; }
__global__ void parent(int *x, int *y) { if (threadIdx.x == 0) { c2<<<1, 64, 0, cudaStreamTailLaunch>>>(x, y); c1<<<2, 32>>>(x); } }
void go(int *x, int *y) { parent<<<1, 64>>>(x, y); }
bool right(const int *h, int i) { return h[64+i] == 7; }
}

namespace tail_all_blocks {
__global__ void c2(int *x, int *y) { y[threadIdx.x] = x[63 - threadIdx.x]; }
__global__ void parent(int *x, int *y) { x[threadIdx.x + 32*blockIdx.x] = 3; if (threadIdx.x + blockIdx.x == 0) { c2<<<1, 64, 0, cudaStreamTailLaunch>>>(x, y); } }
void go(int *x, int *y) { parent<<<2, 32>>>(x, y); }
bool right(const int *h, int i) { return h[64+i] == 3; }
}

namespace named_event {
__global__ void c1(int *x) { x[threadIdx.x] = 4; }
__global__ void c2(int *x, int *y) { y[threadIdx.x] = x[63 - threadIdx.x]; }
__global__ void parent(int *x, int *y) { if (threadIdx.x == 0) { cudaStream_t s, t; cudaEvent_t e; cudaStreamCreateWithFlags(&s, cudaStreamNonBlocking); cudaStreamCreateWithFlags(&t, cudaStreamNonBlocking); cudaEventCreateWithFlags(&e, cudaEventDisableTiming);
 c1<<<1, 64, 0, s>>>(x); cudaEventRecord(e, s); cudaStreamWaitEvent(t, e, 0); c2<<<1, 64, 0, t>>>(x, y); cudaStreamDestroy(s); cudaStreamDestroy(t); cudaEventDestroy(e); } }
void go(int *x, int *y) { parent<<<1, 64>>>(x, y); }
bool right(const int *h, int i) { return h[64+i] == 4; }
}

namespace named_noevent {
__global__ void c1(int *x) { x[threadIdx.x] = 4; }
__global__ void c2(int *x, int *y) { y[threadIdx.x] = x[63 - threadIdx.x]; }
__global__ void parent(int *x, int *y) { if (threadIdx.x == 0) { cudaStream_t s, t; cudaStreamCreateWithFlags(&s, cudaStreamNonBlocking); cudaStreamCreateWithFlags(&t, cudaStreamNonBlocking);
 c1<<<1, 64, 0, s>>>(x); c2<<<1, 64, 0, t>>>(x, y); cudaStreamDestroy(s); cudaStreamDestroy(t); } }
void go(int *x, int *y) { parent<<<1, 64>>>(x, y); }
bool right(const int *h, int i) { return 1; }
}

namespace set {
__global__ void parent(int *x, int *y) { if (threadIdx.x == 0) { cudaMemsetAsync(x, 1, 256, 0); cudaMemcpyAsync(y, x, 256, cudaMemcpyDeviceToDevice, 0); } }
void go(int *x, int *y) { parent<<<1, 64>>>(x, y); }
bool right(const int *h, int i) { return h[64+i] == 0x01010101 && h[i] == 0x01010101; }
}

namespace rows { // the left half of x, 8 numbers a row, becomes the right half of y
__global__ void parent(int *x, int *y) { if (threadIdx.x == 0) { cudaMemset2DAsync(x, 32, 1, 16, 8, 0); cudaMemcpy2DAsync(y + 4, 32, x, 32, 16, 8, cudaMemcpyDeviceToDevice, 0); } else if (threadIdx.x % 8 > 3) x[threadIdx.x] = 2; }
void go(int *x, int *y) { parent<<<1, 64>>>(x, y); }
bool right(const int *h, int i) { return h[i] == (i % 8 < 4 ? 0x01010101 : 2) && h[64+i] == (i % 8 < 4 ? 0 : 0x01010101); }
}

namespace rows_race {
__global__ void parent(int *x, int *y) { if (threadIdx.x == 0) { cudaMemset2DAsync(x, 32, 1, 16, 8, 0); } else if (threadIdx.x == 35) x[threadIdx.x] = 2; }
void go(int *x, int *y) { parent<<<1, 64>>>(x, y); }
bool right(const int *h, int i) { return 1; }
}

namespace asks {
__global__ void child(int *x) { __shared__ int s[5]; s[0] = *x; x[1] = s[0]; }
__global__ void parent(int *x, int *y) {
    cudaFuncAttributes a;
    int n = 0, v = 0;
    bool ok = cudaFuncGetAttributes(&a, child) == cudaSuccess && a.maxThreadsPerBlock == 1024 && a.sharedSizeBytes == 20;
    ok = ok && cudaOccupancyMaxActiveBlocksPerMultiprocessor(&n, child, 64, 0) == cudaSuccess && n > 0;
    ok = ok && cudaDeviceGetAttribute(&v, cudaDevAttrWarpSize, 0) == cudaSuccess && v == 32;
    ok = ok && cudaDeviceGetAttribute(&v, (cudaDeviceAttr)5000, 0) == cudaErrorInvalidValue && cudaGetLastError() == cudaErrorInvalidValue;
    ok = ok && cudaMemset2DAsync(x, 8, 1, 16, 8, 0) == cudaErrorInvalidPitchValue;
    x[threadIdx.x] = ok;
}
void go(int *x, int *y) { parent<<<1, 64>>>(x, y); }
bool right(const int *h, int i) { return h[i] == 1; }
}

namespace set_race {
__global__ void parent(int *x, int *y) { if (threadIdx.x == 0) cudaMemsetAsync(x, 1, 256, 0); x[threadIdx.x] = 2; }
void go(int *x, int *y) { parent<<<1, 64>>>(x, y); }
bool right(const int *h, int i) { return 1; }
}

namespace recursive {
__global__ void sum(int *x, int n) { int i = threadIdx.x; if (i < n / 2) x[i] += x[i + n / 2]; __syncthreads(); if (i == 0 && n > 2) sum<<<1, 64>>>(x, n / 2); }
__global__ void parent(int *x, int *y) { x[threadIdx.x] = threadIdx.x; __syncthreads(); if (threadIdx.x == 0) sum<<<1, 64>>>(x, 64); }
void go(int *x, int *y) { parent<<<1, 64>>>(x, y); }
bool right(const int *h, int i) { return h[0] == 2016; }
}

namespace quicksort {
__global__ void qs(int *d, int l, int r) {
  int *p = d + l, *q = d + r, v = d[(l + r) / 2];
  while (p <= q) { while (*p < v) p++; while (*q > v) q--; if (p <= q) { int t = *p; *p++ = *q; *q-- = t; } }
  int nr = q - d, nl = p - d;
  if (l < nr) { cudaStream_t s; cudaStreamCreateWithFlags(&s, cudaStreamNonBlocking); qs<<<1, 1, 0, s>>>(d, l, nr); cudaStreamDestroy(s); }
  if (nl < r) { cudaStream_t s; cudaStreamCreateWithFlags(&s, cudaStreamNonBlocking); qs<<<1, 1, 0, s>>>(d, nl, r); cudaStreamDestroy(s); }
}
__global__ void fill(int *x) { x[threadIdx.x] = (threadIdx.x * 37) % 64; }
void go(int *x, int *y) { fill<<<1, 64>>>(x); qs<<<1, 1>>>(x, 0, 63); }
bool right(const int *h, int i) { return h[i] == i; }
}

namespace deep_error {
__global__ void rec(int *x, int n) { if (threadIdx.x == 0) { rec<<<1, 1>>>(x, n + 1); if (cudaGetLastError() != cudaSuccess) x[0] = n; } }
void go(int *x, int *y) { rec<<<1, 32>>>(x, 1); }
bool right(const int *h, int i) { return h[0] == 24; }
}

namespace badcfg {
__global__ void c1(int *x) { x[threadIdx.x] = 4; }
__global__ void parent(int *x, int *y) { if (threadIdx.x == 0) { c1<<<1, 2048>>>(x); x[0] = cudaGetLastError(); } }
void go(int *x, int *y) { parent<<<1, 64>>>(x, y); }
bool right(const int *h, int i) { return h[0] == 9; }
}

namespace next {
__global__ void c1(int *x) { x[threadIdx.x] = 4; }
__global__ void use(int *x, int *y) { y[threadIdx.x] = x[63 - threadIdx.x]; }
__global__ void parent(int *x, int *y) { if (threadIdx.x == 0) c1<<<1, 64>>>(x); }
void go(int *x, int *y) { parent<<<1, 64>>>(x, y); use<<<1, 64>>>(x, y); }
bool right(const int *h, int i) { return h[64+i] == 4; }
}

namespace next_other_stream {
__global__ void c1(int *x) { x[threadIdx.x] = 4; }
__global__ void use(int *x, int *y) { y[threadIdx.x] = x[63 - threadIdx.x]; }
__global__ void parent(int *x, int *y) { if (threadIdx.x == 0) c1<<<1, 64>>>(x); }
void go(int *x, int *y) { cudaStream_t s; cudaStreamCreateWithFlags(&s, cudaStreamNonBlocking); parent<<<1, 64>>>(x, y); use<<<1, 64, 0, s>>>(x, y); }
bool right(const int *h, int i) { return 1; }
}

namespace oob {
__global__ void c1(int *x) { x[threadIdx.x + 1000] = 4; }
__global__ void parent(int *x, int *y) { if (threadIdx.x == 0) c1<<<1, 64>>>(x); }
void go(int *x, int *y) { parent<<<1, 64>>>(x, y); }
bool right(const int *h, int i) { return 1; }
}

namespace grandchild {
__global__ void c2(int *x) { x[threadIdx.x] = 4; }
__global__ void c1(int *x) { if (threadIdx.x == 0) c2<<<1, 64>>>(x); }
__global__ void parent(int *x, int *y) { if (threadIdx.x == 0) c1<<<1, 64>>>(x); if (threadIdx.x == 1) x[7] = 1; }
void go(int *x, int *y) { parent<<<1, 64>>>(x, y); }
bool right(const int *h, int i) { return 1; }
}

namespace local {
__global__ void child(int *p) { p[threadIdx.x] = 3; }
__global__ void parent(int *x, int *y) { int own[4]; child<<<1, 4>>>(own); x[0] = cudaGetLastError(); y[0] = own[1]; }
void go(int *x, int *y) { parent<<<1, 1>>>(x, y); }
bool right(const int *h, int i) { return h[0] == cudaErrorInvalidValue; }
}

static const struct {
    const char *name;
    void (*go)(int *x, int *y);
    bool (*right)(const int *h, int i);
} cases[] = {
    {"sync_ok", sync_ok::go, sync_ok::right},
    {"nosync", nosync::go, nosync::right},
    {"after", after::go, after::right},
    {"own", own::go, own::right},
    {"two_null", two_null::go, two_null::right},
    {"two_threads_null", two_threads_null::go, two_threads_null::right},
    {"two_blocks", two_blocks::go, two_blocks::right},
    {"forget", forget::go, forget::right},
    {"tail", tail::go, tail::right},
    {"tail_all_blocks", tail_all_blocks::go, tail_all_blocks::right},
    {"named_event", named_event::go, named_event::right},
    {"named_noevent", named_noevent::go, named_noevent::right},
    {"set", set::go, set::right},
    {"set_race", set_race::go, set_race::right},
    {"recursive", recursive::go, recursive::right},
    {"quicksort", quicksort::go, quicksort::right},
    {"deep_error", deep_error::go, deep_error::right},
    {"badcfg", badcfg::go, badcfg::right},
    {"next", next::go, next::right},
    {"next_other_stream", next_other_stream::go, next_other_stream::right},
    {"rows", rows::go, rows::right},
    {"rows_race", rows_race::go, rows_race::right},
    {"asks", asks::go, asks::right},
    {"local", local::go, local::right},
    {"oob", oob::go, oob::right},
    {"grandchild", grandchild::go, grandchild::right},
};

int main(int argc, char **argv)
{
    int h[128];
    for (auto &c : cases)
        if (argc == 2 && !strcmp(argv[1], c.name)) {
            int *x;
            cudaMalloc(&x, sizeof h);
            cudaMemset(x, 0, sizeof h);
            c.go(x, x + 64);
            cudaError_t e = cudaDeviceSynchronize();
            cudaMemcpy(h, x, sizeof h, cudaMemcpyDeviceToHost);
            int wrong = 0;
            for (int i = 0; e == cudaSuccess && i < 64; i++)
                wrong += !c.right(h, i);
            printf("%s, %d wrong\n", cudaGetErrorName(e), wrong);
            return wrong != 0;
        }
    return 2;
}
