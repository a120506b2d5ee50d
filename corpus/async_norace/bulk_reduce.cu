// Sums are added to global memory by a bulk reduction, and read when it is complete.
// -arch=compute_90
#include <cstdint>
#include <cstdio>

const int BLOCK = 64;

__global__ void add(const int *in, int *out) {
  __shared__ alignas(128) int sums[BLOCK];
  int t = threadIdx.x;
  sums[t] = in[t] + in[BLOCK + t];
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
  __syncthreads();
  if (t == 0) {
    asm volatile("cp.reduce.async.bulk.global.shared::cta.bulk_group.add.s32 [%0], [%1], %2;"
                 ::"l"(out), "r"((uint32_t)__cvta_generic_to_shared(sums)), "n"(4 * BLOCK) : "memory");
    asm volatile("cp.async.bulk.commit_group;" ::: "memory");
    asm volatile("cp.async.bulk.wait_group 0;" ::: "memory");
  }
  __syncthreads();
  out[t] *= 2;
}

int main() {
  int *in, *out;
  cudaMallocManaged(&in, 2 * BLOCK * sizeof(int));
  cudaMallocManaged(&out, BLOCK * sizeof(int));
  for (int i = 0; i < 2 * BLOCK; i++) in[i] = i;
  add<<<1, BLOCK>>>(in, out);
  cudaDeviceSynchronize();
  printf("out[1] = %d\n", out[1]);
  return out[1] != 132;
}
