// Results leave by bulk copies from two buffers, and the wait leaves both copies pending where one is right.
// -arch=compute_90
#include <cstdint>
#include <cstdio>

const int BLOCK = 128, TILES = 4;

__global__ void scale(const int *in, int *out) {
  __shared__ alignas(128) int buffer[2][BLOCK];
  int t = threadIdx.x;
  for (int i = 0; i < TILES; i++) {
    if (t == 0) asm volatile("cp.async.bulk.wait_group.read 2;" ::: "memory");
    __syncthreads();
    buffer[i % 2][t] = in[i * BLOCK + t] * 2; // want error:group-pending
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
    __syncthreads();
    if (t == 0) {
      asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], %2;" // want error:group-pending
                   ::"l"(out + i * BLOCK), "r"((uint32_t)__cvta_generic_to_shared(buffer[i % 2])), "n"(4 * BLOCK) : "memory");
      asm volatile("cp.async.bulk.commit_group;" ::: "memory");
    }
  }
  if (t == 0) asm volatile("cp.async.bulk.wait_group 0;" ::: "memory");
}

int main() {
  int *in, *out;
  cudaMallocManaged(&in, TILES * BLOCK * sizeof(int));
  cudaMallocManaged(&out, TILES * BLOCK * sizeof(int));
  for (int i = 0; i < TILES * BLOCK; i++) in[i] = i;
  scale<<<1, BLOCK>>>(in, out);
  cudaDeviceSynchronize();
  printf("out[1] = %d\n", out[1]);
}
