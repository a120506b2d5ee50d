// The source of a bulk copy is written again while the copy may still read it.
// -arch=compute_90
#include <cstdint>
#include <cstdio>

const int BLOCK = 128;

// Bytes of shared memory are copied to global memory.
__device__ void store(void *to, uint32_t from, uint32_t bytes) {
  asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], %2;" ::"l"(to), "r"(from), "r"(bytes) : "memory");  // want error:stage-reuse
  asm volatile("cp.async.bulk.commit_group;" ::: "memory");
}

__global__ void put(const int *in, int *out) {
  __shared__ alignas(128) int tile[BLOCK];
  int t = threadIdx.x;
  for (int i = 0; i < 2; i++) {
    tile[t] = in[i * BLOCK + t] * 2;  // want error:stage-reuse
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
    __syncthreads();
    if (t == 0) {
      store(out + i * BLOCK, __cvta_generic_to_shared(tile), sizeof(tile));
    }
    __syncthreads();
  }
  if (t == 0) asm volatile("cp.async.bulk.wait_group 0;" ::: "memory");
}

int main() {
  int *in, *out;
  cudaMallocManaged(&in, 2 * BLOCK * sizeof(int));
  cudaMallocManaged(&out, 2 * BLOCK * sizeof(int));
  for (int i = 0; i < 2 * BLOCK; i++) in[i] = i;
  put<<<1, BLOCK>>>(in, out);
  cudaDeviceSynchronize();
  printf("out[1] = %d\n", out[1]);
}
