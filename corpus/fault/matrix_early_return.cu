// Lanes that have no element return before the warp loads a matrix by ldmatrix, which needs all 32.
#include <cstdio>

__global__ void elements(int *out, int n) {
  __shared__ alignas(16) unsigned short tile[8][8];
  int t = threadIdx.x;
  tile[t / 8][t % 8] = t;
  tile[t / 8 + 4][t % 8] = t + 32;
  __syncthreads();
  if (t >= n) return;
  unsigned row = __cvta_generic_to_shared(tile[t % 8]), pair;
  asm volatile("ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%0}, [%1];" : "=r"(pair) : "r"(row) : "memory"); // want error:warp-divergence
  out[t] = pair;
}

int main() {
  int *out;
  cudaMallocManaged(&out, 32 * sizeof(int));
  for (int i = 0; i < 32; i++) out[i] = 0;
  elements<<<1, 32>>>(out, 20);
  cudaDeviceSynchronize();
  printf("out[0] = %d\n", out[0]);
}
