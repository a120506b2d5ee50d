// A matrix product by mma of tiles that are fetched a step ahead; the wait leaves the group pending whose tile is used.
#include <cstdint>
#include <cstdio>
#include <cuda_fp16.h>
#include <cuda_pipeline.h>

const int M = 16, N = 8, K = 64, STEP = 16, WARPS = 2;

// A warp multiplies 16 rows of a by b: fragments by ldmatrix from tiles that are copied asynchronously, sums by mma.
__global__ void multiply(const half *a, const half *b, float *out) {
  __shared__ alignas(16) half left[2][WARPS * M][STEP], right[2][N][STEP]; // right: by columns
  int t = threadIdx.x, lane = t % 32, row = t / 32 * M;
  float sum[4] = {};
  auto fetch = [&](int k) {
    if (k >= K) return __pipeline_commit();
    __pipeline_memcpy_async(&left[k / STEP % 2][t / 2][t % 2 * 8], &a[t / 2 * K + k + t % 2 * 8], 16);             // want error:group-pending
    if (t < 16) __pipeline_memcpy_async(&right[k / STEP % 2][t / 2][t % 2 * 8], &b[t / 2 * K + k + t % 2 * 8], 16); // want error:group-pending
    __pipeline_commit();
  };
  fetch(0);
  for (int k = 0; k < K; k += STEP) {
    fetch(k + STEP);
    __pipeline_wait_prior(2);
    __syncthreads();
    uint32_t x[4], y[2];
    uint32_t from = __cvta_generic_to_shared(&left[k / STEP % 2][row + lane % 16][lane / 16 * 8]);
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];" // want error:group-pending
                 : "=r"(x[0]), "=r"(x[1]), "=r"(x[2]), "=r"(x[3]) : "r"(from) : "memory");
    from = __cvta_generic_to_shared(&right[k / STEP % 2][lane % 8][lane / 8 % 2 * 8]);
    asm volatile("ldmatrix.sync.aligned.m8n8.x2.shared.b16 {%0,%1}, [%2];" : "=r"(y[0]), "=r"(y[1]) : "r"(from) : "memory"); // want error:group-pending
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
                 : "+f"(sum[0]), "+f"(sum[1]), "+f"(sum[2]), "+f"(sum[3])
                 : "r"(x[0]), "r"(x[1]), "r"(x[2]), "r"(x[3]), "r"(y[0]), "r"(y[1]));
    __syncthreads();
  }
  for (int i = 0; i < 4; i++) out[(row + lane / 4 + i / 2 * 8) * N + lane % 4 * 2 + i % 2] = sum[i];
}

int main() {
  half *a, *b;
  float *out;
  cudaMallocManaged(&a, WARPS * M * K * sizeof(half));
  cudaMallocManaged(&b, N * K * sizeof(half));
  cudaMallocManaged(&out, WARPS * M * N * sizeof(float));
  for (int i = 0; i < WARPS * M * K; i++) a[i] = __float2half(i % 7 - 3);
  for (int i = 0; i < N * K; i++) b[i] = __float2half(i % 5 - 2);
  multiply<<<1, 32 * WARPS>>>(a, b, out);
  cudaDeviceSynchronize();
  int wrong = 0;
  for (int i = 0; i < WARPS * M * N; i++) {
    float want = 0;
    for (int k = 0; k < K; k++) want += __half2float(a[i / N * K + k]) * __half2float(b[i % N * K + k]);
    wrong += out[i] != want;
  }
  printf("%d wrong\n", wrong);
  return 0;
}
