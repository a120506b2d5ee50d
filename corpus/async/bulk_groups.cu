// The wait for a bulk copy leaves its group pending.
// -arch=compute_90
#include <cstdint>
#include <cstdio>

const int BLOCK = 128;

// Bytes of shared memory are copied to global memory.
__device__ void store(void *to, uint32_t from, uint32_t bytes) {
  asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], %2;" ::"l"(to), "r"(from), "r"(bytes) : "memory");  // want error:group-pending
  asm volatile("cp.async.bulk.commit_group;" ::: "memory");
}

__global__ void put(const int *in, int *out) {
  __shared__ alignas(128) int tile[BLOCK];
  int t = threadIdx.x;
  tile[t] = in[t] * 2;
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
  __syncthreads();
  if (t == 0) {
    store(out, __cvta_generic_to_shared(tile), sizeof(tile));
    asm volatile("cp.async.bulk.wait_group 1;" ::: "memory");
  }
  __syncthreads();
  out[BLOCK + t] = out[BLOCK - 1 - t];  // want error:group-pending
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
