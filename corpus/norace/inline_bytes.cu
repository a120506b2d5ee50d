// Loads bytes as cub::ThreadLoad does: inline PTX declares registers of 8 bits in a scope of its own. A byte is no predicate.
#include <cstdio>

const int N = 256, BLOCK = 128;

__device__ unsigned char loadByte(const unsigned char *p) {
  unsigned short v;
  asm("{ .reg .u8 datum; ld.global.nc.u8 datum, [%1]; cvt.u16.u8 %0, datum; }" : "=h"(v) : "l"(p));
  return v;
}

__device__ int twice(int v) { // the low byte, as a signed number, twice
  int r;
  asm("{ .reg .s8 low; .reg .s16 wide; cvt.s8.s32 low, %1; cvt.s16.s8 wide, low; add.s16 wide, wide, wide; cvt.s32.s16 %0, wide; }" : "=r"(r) : "r"(v));
  return r;
}

__device__ unsigned difference(unsigned a, unsigned b) { // and whether nothing was borrowed
  unsigned d, c;
  asm("{ sub.cc.u32 %0, %2, %3; addc.u32 %1, 0, 0; }" : "=r"(d), "=r"(c) : "r"(a), "r"(b));
  return d + c;
}

__global__ void count(const unsigned char *in, int *bins, int *out) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  atomicAdd(&bins[loadByte(in + i) % 16], 1);
  out[i] = twice(i) + difference(i, 100);
}

int main() {
  unsigned char *in;
  int *bins, *out;
  cudaMallocManaged(&in, N);
  cudaMallocManaged(&bins, 16 * sizeof(int));
  cudaMallocManaged(&out, N * sizeof(int));
  for (int i = 0; i < N; i++) in[i] = i, out[i] = 0;
  for (int i = 0; i < 16; i++) bins[i] = 0;
  count<<<N / BLOCK, BLOCK>>>(in, bins, out);
  cudaDeviceSynchronize();
  int wrong = 0;
  for (int i = 0; i < 16; i++) wrong += bins[i] != N / 16;
  for (int i = 0; i < N; i++) wrong += out[i] != 2 * (signed char)i + i - 100 + (i >= 100);
  printf("%d wrong\n", wrong);
  return wrong != 0;
}
