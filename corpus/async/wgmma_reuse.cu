// A matrix is written again while wgmma may still read it: the barrier does not wait for that.
// -arch=compute_90a
#include <cstdint>
#include <cstdio>

const int ROWS = 64, COLUMNS = 8, DEPTH = 16, STEPS = 3, STAGES = 1;

// Matrices without swizzle: pieces of 8 rows of 16 bytes, those along K 128 bytes apart, those along M or N 256.
__device__ uint64_t matrix(const void *at) {
  return (uint64_t)(__cvta_generic_to_shared(at) >> 4) | 8ull << 16 | 16ull << 32;
}

__device__ int place(int row, int k) { return row / 8 * 128 + k / 8 * 64 + row % 8 * 8 + k % 8; }

__device__ void multiply(float (&d)[4], const uint16_t *a, const uint16_t *b) {
  asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
  asm volatile("wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%0, %1, %2, %3}, %4, %5, 1, 1, 1, 0, 0;" // want error:stage-reuse
               : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]) : "l"(matrix(a)), "l"(matrix(b)) : "memory");
  asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
}

// The sums of a column of ones and of matrices of a single value.
__global__ void product(const uint16_t *in, float *out) {
  __shared__ alignas(128) uint16_t a[STAGES][ROWS * DEPTH], b[COLUMNS * DEPTH];
  int t = threadIdx.x;
  float d[4] = {0, 0, 0, 0};
  for (int i = t; i < COLUMNS * DEPTH; i += 128) b[place(i / DEPTH, i % DEPTH)] = 0x3c00; // 1
  for (int s = 0; s < STEPS; s++) {
    for (int i = t; i < ROWS * DEPTH; i += 128) a[s % STAGES][place(i / DEPTH, i % DEPTH)] = in[s]; // want error:stage-reuse
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
    __syncthreads();
    multiply(d, a[s % STAGES], b);
    __syncthreads();
  }
  asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory");
  out[t] = d[0] + d[1];
}

int main() {
  uint16_t *in;
  float *out;
  cudaMallocManaged(&in, STEPS * sizeof(uint16_t));
  cudaMallocManaged(&out, 128 * sizeof(float));
  for (int s = 0; s < STEPS; s++) in[s] = 0x3c00;
  product<<<1, 128>>>(in, out);
  cudaDeviceSynchronize();
  printf("out[0] = %g\n", out[0]);
}
