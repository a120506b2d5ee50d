// A little of everything that shapes PTX: state spaces, initialisers, calls, tables, pragmas, debug lines.
#include <cstdio>
#include <cassert>
#include <cuda_fp16.h>

__constant__ float coef[5] = {0.5f, -1.25f, 3e10f, 1e-20f, 0.0f};
__constant__ short bias[3][2] = {{1, -2}, {3, -4}, {5, -6}};
__device__ int counter = 42, spare;
__device__ int table[4] = {1, 2, 3};
__device__ int *where[3] = {&counter, &table[2], nullptr};
__device__ double big[2] = {3.14159265358979, -1e300};
__managed__ int shared_with_host = 7;
extern __shared__ float4 dynamic[];

struct alignas(16) Item { char tag; int weight; double price; float4 v; };
__device__ Item items[2] = {{'a', 1, 2.5, {1, 2, 3, 4}}, {'b', -1, -2.5, {4, 3, 2, 1}}};

struct Shape {
    __device__ virtual float area(float k) const { return k; }
    __device__ virtual ~Shape() {}
};
struct Circle : Shape {
    float r;
    __device__ Circle(float r) : r(r) {}
    __device__ float area(float k) const override { return k * r * r; }
};

typedef int (*Op)(int, int);
__device__ __noinline__ int plus_op(int a, int b) { return a + b; }
__device__ __noinline__ int minus_op(int a, int b) { return a - b; }
__device__ Op ops[2] = {plus_op, minus_op};

__device__ __noinline__ int ackermann(int m, int n) {
    if (m == 0) return n + 1;
    if (n == 0) return ackermann(m - 1, 1);
    return ackermann(m - 1, ackermann(m, n - 1));
}

__device__ __noinline__ Item swap_item(Item a) {
    a.weight = -a.weight;
    return a;
}

__global__ void __launch_bounds__(128, 2) reduce(const float *__restrict__ in, float *out, int n) {
    __shared__ float part[128];
    float s = 0;
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) s += in[i];
    part[threadIdx.x] = s;
    __syncthreads();
#pragma unroll 1
    for (int w = blockDim.x / 2; w > 0; w >>= 1) {
        if (threadIdx.x < w) part[threadIdx.x] += part[threadIdx.x + w];
        __syncthreads();
    }
    if (threadIdx.x == 0) atomicAdd(out, part[0] * coef[blockIdx.x % 5]);
}

__global__ void warp(unsigned *out, unsigned v) {
    unsigned lane = threadIdx.x & 31;
    unsigned x = __shfl_down_sync(0xffffffffu, v + lane, 3);
    unsigned b = __ballot_sync(0xffffffffu, x & 1);
    int all;
    unsigned m = __match_all_sync(0xffffffffu, v, &all);
    if (__any_sync(0xffffffffu, lane == 7)) __syncwarp();
    out[threadIdx.x] = x ^ b ^ m ^ all ^ __popc(__activemask());
}

__global__ void calls(int *p, Op op, Item it, const Shape *shape) {
    Circle c(2.0f);
    int i = threadIdx.x;
    p[i] = op(ops[i & 1](i, 3), ackermann(1, 2));
    p[i + 1] = swap_item(it).weight + (int)shape->area(1.0f) + (int)c.area(2.0f);
    if (p[i] > 100) printf("p[%d] = %d at \"%s\"\n", i, p[i], "here\t");
    assert(p[i] != 3);
}

__global__ void choose(int *p, int k, __half *h) {
    switch (k) {
    case 0: p[0] = 1; break;
    case 1: p[1] = atomicExch(p, 3); break;
    case 2: p[2] = atomicCAS(p + 1, 1, 2); break;
    case 3: h[0] = __hadd(h[0], h[1]); break;
    case 4: p[4] = (int)sin((double)k * big[0]); break;
    case 5: p[5] = bias[k % 3][k & 1]; break;
    case 6: p[6] = *where[k & 1]; break;
    case 7: __threadfence(); p[7] = shared_with_host + spare; break;
    default: __trap();
    }
    dynamic[threadIdx.x] = items[k & 1].v;
    volatile int *q = p;
    while (q[8] == 0) __nanosleep(20);
    asm volatile("{ // braces of inline assembly\n\t.reg .pred q;\n\tsetp.ne.s32 q, %1, 0;\n\t@q add.s32 %0, %0, 1;\n\t@!q bra DONE%=;\nDONE%=:\n\t}" : "+r"(p[9]) : "r"(k));
}
