// Matrices are copied to shared memory by cp.async and multiplied with no proxy fence between the wait and the product.
// -arch=compute_90a
#include <cstdint>
#include <cstdio>

const int ROWS = 64, COLUMNS = 8, DEPTH = 16;

// Matrices without swizzle: pieces of 8 rows of 16 bytes, those along K 128 bytes apart, those along M or N 256.
__device__ uint64_t matrix(const void *at) {
  return (uint64_t)(__cvta_generic_to_shared(at) >> 4) | 8ull << 16 | 16ull << 32;
}

__global__ void product(const uint4 *in, float *out) {
  __shared__ alignas(128) uint16_t a[ROWS * DEPTH], b[COLUMNS * DEPTH];
  int t = threadIdx.x;
  uint32_t to = (uint32_t)__cvta_generic_to_shared(a), behind = (uint32_t)__cvta_generic_to_shared(b);
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" :: "r"(to + 16 * t), "l"(in + t) : "memory"); // want warning:missing-proxy-fence
  if (t < 16) asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" :: "r"(behind + 16 * t), "l"(in + t) : "memory"); // want warning:missing-proxy-fence
  asm volatile("cp.async.commit_group;" ::: "memory");
  asm volatile("cp.async.wait_group 0;" ::: "memory");
  __syncthreads();
  float d[4] = {0, 0, 0, 0};
  asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
  asm volatile("wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%0, %1, %2, %3}, %4, %5, 1, 1, 1, 0, 0;" // want warning:missing-proxy-fence
               : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]) : "l"(matrix(a)), "l"(matrix(b)) : "memory");
  asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
  asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory");
  out[t] = d[0] + d[1];
}

int main() {
  uint16_t *in;
  float *out;
  cudaMallocManaged(&in, ROWS * DEPTH * sizeof(uint16_t));
  cudaMallocManaged(&out, 128 * sizeof(float));
  for (int i = 0; i < ROWS * DEPTH; i++) in[i] = 0x3c00; // 1
  product<<<1, 128>>>((uint4 *)in, out);
  cudaDeviceSynchronize();
  printf("out[0] = %g\n", out[0]);
}
