// Shared memory is written again while tcgen05.cp may still read it.
// -arch=compute_100a
#include <cstdint>
#include <cstdio>

const int ROWS = 128, WORDS = 8; // 32 bytes a row

__device__ uint32_t at(const void *p) { return (uint32_t)__cvta_generic_to_shared(p); }

// A matrix without swizzle: pieces of 8 rows of 16 bytes, those of a row 128 bytes apart, those of a column 256.
__device__ uint64_t matrix(const void *p) { return at(p) >> 4 | 8ull << 16 | 16ull << 32 | 1ull << 46; }

__device__ int place(int row, int word) { return row / 8 * 64 + word / 4 * 32 + row % 8 * 4 + word % 4; }

__device__ void wait(uint64_t *bar, int parity) {
  uint32_t done = 0;
  while (!done)
    asm volatile("{ .reg .pred p; mbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2; selp.u32 %0, 1, 0, p; }"
                 : "=r"(done) : "r"(at(bar)), "r"(parity) : "memory");
}

__global__ void copy(int *out) {
  __shared__ alignas(128) int m[ROWS * WORDS];
  __shared__ uint64_t done;
  __shared__ uint32_t base;
  int t = threadIdx.x;
  if (t < 32) asm volatile("tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [%0], 32;" :: "r"(at(&base)) : "memory");
  if (t == 0) asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" :: "r"(at(&done)) : "memory");
  for (int i = t; i < ROWS * WORDS; i += 128) m[place(i / WORDS, i % WORDS)] = i;
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
  __syncthreads();
  uint32_t d = base;
  if (t == 0) {
    asm volatile("tcgen05.cp.cta_group::1.128x256b [%0], %1;" :: "r"(d), "l"(matrix(m)) : "memory"); // want error:stage-reuse
    asm volatile("tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 [%0];" :: "r"(at(&done)) : "memory");
  }
  m[place(t, 0)] = -1; // want error:stage-reuse
  wait(&done, 0);
  int first, last;
  asm volatile("{ .reg .b32 w<8>; tcgen05.ld.sync.aligned.32x32b.x8.b32 {w0, w1, w2, w3, w4, w5, w6, w7}, [%2];"
               " tcgen05.wait::ld.sync.aligned; mov.b32 %0, w0; mov.b32 %1, w7; }"
               : "=r"(first), "=r"(last) : "r"(d + (t / 32 * 32 << 16)) : "memory");
  out[2 * t] = first;
  out[2 * t + 1] = last;
  __syncthreads();
  if (t < 32) asm volatile("tcgen05.dealloc.cta_group::1.sync.aligned.b32 %0, 32;" :: "r"(d));
}

int main() {
  int *out;
  cudaMallocManaged(&out, 256 * sizeof(int));
  copy<<<1, 128>>>(out);
  cudaDeviceSynchronize();
  printf("out[3] = %d\n", out[3]);
}
