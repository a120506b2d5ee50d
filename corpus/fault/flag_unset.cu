// A flag that is set under a condition which does not hold: in each block, the warps that wait for it poll for ever,
// and the others wait for them at the barrier.
#include <cstdio>

const int BLOCK = 96;

__global__ void wait(const int *count, int *out) {
  __shared__ int ready;
  if (threadIdx.x == 0) ready = 0;
  __syncthreads();
  if (threadIdx.x == 0 && *count > 0) {
    out[blockIdx.x] = *count;
    __threadfence_block();
    atomicExch_block(&ready, 1);
  }
  if (threadIdx.x / 32 == 1) {
    while (atomicAdd_block(&ready, 0) == 0) {} // want error:deadlock
    __threadfence_block();
  }
  __syncthreads(); // want error:deadlock
}

int main() {
  int *count, *out;
  cudaMallocManaged(&count, sizeof(int));
  cudaMallocManaged(&out, 2 * sizeof(int));
  wait<<<2, BLOCK>>>(count, out);
  printf("%s\n", cudaGetErrorString(cudaDeviceSynchronize()));
}
