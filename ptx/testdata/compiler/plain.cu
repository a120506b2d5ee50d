// For clang without a toolkit's headers: only what the compiler itself knows.
#define __global__ __attribute__((global))
#define __device__ __attribute__((device))
#define __shared__ __attribute__((shared))
#define __constant__ __attribute__((constant))

__constant__ int scale[3] = {1, -2, 3};
__device__ const char *names[2] = {"plain", "text \"quoted\""};
__device__ struct { short a; double b; int *c; } mixed = {1, 0.1, 0};
extern __shared__ int dynamic[];

struct Pair { int a; long long b; };

__device__ __attribute__((noinline)) Pair twist(Pair p) { return {(int)p.b, p.a}; }

__device__ __attribute__((noinline)) float poly(float x, float (*f)(float)) { return f(x) * x + 0.5f; }

__device__ float square(float x) { return x * x; }

__global__ void kernel(int *p, float *q, Pair v, char c) {
    __shared__ int tile[32];
    int t = __nvvm_read_ptx_sreg_tid_x();
    tile[t] = p[t] * scale[t % 3];
    __nvvm_bar_sync(0);
    dynamic[t] = tile[31 - t] + twist(v).a;
    q[t] = poly(q[t + 1], square);
    for (const char *s = names[t & 1]; *s; s++) p[0] += *s ^ c;
    switch (p[1]) {
    case 0: p[2] = __atomic_fetch_add(p, 3, __ATOMIC_SEQ_CST); break;
    case 1: p[2] = mixed.a; break;
    case 2: p[3] = (int)mixed.b; break;
    case 3: p[4] = 7; break;
    case 4: p[6] = 9; break;
    }
}
