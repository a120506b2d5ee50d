// A warp loads a matrix by ldmatrix while another overwrites one row of it, without a barrier between them.
#include <cstdio>

const int PITCH = 16;

__global__ void tiles(int *out) {
  __shared__ alignas(16) unsigned short tile[8][PITCH]; // a matrix and as many columns beside it
  int t = threadIdx.x, lane = t % 32;
  for (int i = t; i < 8 * PITCH; i += 64) (&tile[0][0])[i] = i;
  __syncthreads();
  if (t < 32) {
    unsigned row = __cvta_generic_to_shared(tile[lane % 8]), pair;
    asm volatile("ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%0}, [%1];" : "=r"(pair) : "r"(row) : "memory"); // want error:missing-barrier
    out[lane] = pair;
  } else if (lane < 8) {
    tile[lane][8] = 1; // beside what is loaded
    if (lane == 5) tile[lane][7] = 2; // want error:missing-barrier
  }
}

int main() {
  int *out;
  cudaMallocManaged(&out, 32 * sizeof(int));
  for (int i = 0; i < 32; i++) out[i] = 0;
  tiles<<<1, 64>>>(out);
  cudaDeviceSynchronize();
  printf("out[0] = %d\n", out[0]);
}
