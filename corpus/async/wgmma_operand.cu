// The registers of A are written anew while the matrix product that reads them may not be complete.
// -arch=compute_90a
#include <cstdint>
#include <cstdio>

const int ROWS = 64, COLUMNS = 8, DEPTH = 16;

// Matrices without swizzle: pieces of 8 rows of 16 bytes, those along K 128 bytes apart, those along M or N 256.
__device__ uint64_t matrix(const void *at) {
  return (uint64_t)(__cvta_generic_to_shared(at) >> 4) | 8ull << 16 | 16ull << 32;
}

__device__ int place(int row, int k) { return row / 8 * 128 + k / 8 * 64 + row % 8 * 8 + k % 8; }

__global__ void product(float *out) {
  __shared__ alignas(128) uint16_t b[COLUMNS * DEPTH];
  int t = threadIdx.x;
  for (int i = t; i < COLUMNS * DEPTH; i += 128) b[place(i / DEPTH, i % DEPTH)] = 0x3c00; // 1
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
  __syncthreads();
  float x;
  asm volatile( // want error:accumulators-not-awaited
      "{.reg .f32 d<4>; .reg .b32 a<4>;\n"
      "mov.f32 d0, 0f00000000; mov.f32 d1, d0; mov.f32 d2, d0; mov.f32 d3, d0;\n"
      "mov.b32 a0, 0x3c003c00; mov.b32 a1, a0; mov.b32 a2, a0; mov.b32 a3, a0;\n"
      "wgmma.fence.sync.aligned;\n"
      "wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {d0, d1, d2, d3}, {a0, a1, a2, a3}, %1, 1, 1, 1, 0;\n"
      "wgmma.commit_group.sync.aligned;\n"
      "add.u32 a0, a0, 0x10001; add.u32 a1, a1, 0x10001; add.u32 a2, a2, 0x10001; add.u32 a3, a3, 0x10001;\n"
      "wgmma.fence.sync.aligned;\n"
      "wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {d0, d1, d2, d3}, {a0, a1, a2, a3}, %1, 1, 1, 1, 0;\n"
      "wgmma.commit_group.sync.aligned;\n"
      "wgmma.wait_group.sync.aligned 0;\n"
      "add.f32 %0, d0, d1;}" : "=f"(x) : "l"(matrix(b)) : "memory");
  out[t] = x;
}

int main() {
  float *out;
  cudaMallocManaged(&out, 128 * sizeof(float));
  product<<<1, 128>>>(out);
  cudaDeviceSynchronize();
  printf("out[0] = %g\n", out[0]);
}
