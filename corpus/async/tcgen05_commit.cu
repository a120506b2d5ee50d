// tcgen05.commit is before the last tcgen05.mma, so that the mbarrier says nothing about that one.
// -arch=compute_100a
#include <cstdint>
#include <cstdio>

const int ROWS = 128, COLUMNS = 16, DEPTH = 16;

__device__ uint32_t at(const void *p) { return (uint32_t)__cvta_generic_to_shared(p); }

// Matrices without swizzle: pieces of 8 rows of 16 bytes, those along K 128 bytes apart, those along M or N 256.
__device__ uint64_t matrix(const void *p) { return at(p) >> 4 | 8ull << 16 | 16ull << 32 | 1ull << 46; }

__device__ int place(int row, int k) { return row / 8 * 128 + k / 8 * 64 + row % 8 * 8 + k % 8; }

__device__ void allocate(uint32_t *where) {
  asm volatile("tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [%0], 32;" :: "r"(at(where)) : "memory");
}

__device__ void release(uint32_t from) {
  asm volatile("tcgen05.dealloc.cta_group::1.sync.aligned.b32 %0, 32;" :: "r"(from)); // want error:tensor-core-not-awaited
}

// D, at columns of tensor memory, is A * B, or with add more by that: f16, f32, 128 rows, 16 columns.
__device__ void multiply(uint32_t d, const uint16_t *a, const uint16_t *b, bool add) {
  asm volatile("{ .reg .pred p; setp.ne.u32 p, %4, 0;" // want error:tensor-core-not-awaited
               " tcgen05.mma.cta_group::1.kind::f16 [%0], %1, %2, %3, p; }"
               :: "r"(d), "l"(matrix(a)), "l"(matrix(b)), "r"(1 << 4 | COLUMNS / 8 << 17 | ROWS / 16 << 24), "r"((int)add) : "memory");
}

__device__ void commit(uint64_t *bar) {
  asm volatile("tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 [%0];" :: "r"(at(bar)) : "memory");
}

__device__ void wait(uint64_t *bar, int parity) {
  uint32_t done = 0;
  while (!done)
    asm volatile("{ .reg .pred p; mbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2; selp.u32 %0, 1, 0, p; }"
                 : "=r"(done) : "r"(at(bar)), "r"(parity) : "memory");
}

__device__ void init(uint64_t *bar) { asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" :: "r"(at(bar)) : "memory"); }

// The first column of the lanes of a warp.
__device__ float load(uint32_t d) {
  float v;
  asm volatile("tcgen05.ld.sync.aligned.32x32b.x1.b32 {%0}, [%1];" : "=f"(v) : "r"(d + (threadIdx.x / 32 * 32 << 16)) : "memory"); // want error:tensor-core-not-awaited
  return v;
}

__device__ void loaded() { asm volatile("tcgen05.wait::ld.sync.aligned;" ::: "memory"); }

__global__ void product(float *out) {
  __shared__ alignas(128) uint16_t a[ROWS * DEPTH], b[COLUMNS * DEPTH];
  __shared__ uint64_t done;
  __shared__ uint32_t base;
  int t = threadIdx.x;
  if (t < 32) allocate(&base);
  if (t == 0) init(&done);
  for (int i = t; i < ROWS * DEPTH; i += 128) a[place(i / DEPTH, i % DEPTH)] = 0x3c00; // 1
  for (int i = t; i < COLUMNS * DEPTH; i += 128) b[place(i / DEPTH, i % DEPTH)] = 0x3c00;
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
  __syncthreads();
  if (t == 0) {
    multiply(base, a, b, false);
    commit(&done);
    multiply(base, a, b, true);
  }
  wait(&done, 0);
  float v = load(base);
  loaded();
  out[t] = v;
  __syncthreads();
  if (t < 32) release(base);
}

int main() {
  float *out;
  cudaMallocManaged(&out, 128 * sizeof(float));
  product<<<1, 128>>>(out);
  cudaDeviceSynchronize();
  printf("out[0] = %g\n", out[0]);
}
