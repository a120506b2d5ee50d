// The answer of clusterlaunchcontrol.try_cancel is read behind a barrier of the block, before the mbarrier says that it is there.
// -arch=compute_100
#include <cstdint>
#include <cstdio>

const int BLOCK = 32;

__device__ uint32_t shared(const void *p) { return (uint32_t)__cvta_generic_to_shared(p); }

// A block asks for the work of one that has not begun.
__global__ void work(int *out) {
  __shared__ alignas(16) uint4 answer;
  __shared__ uint64_t bar;
  int t = threadIdx.x, block = blockIdx.x, again;
  if (t == 0) asm volatile("mbarrier.init.shared.b64 [%0], 1;" ::"r"(shared(&bar)) : "memory");
  __syncthreads();
  if (t == 0) {
    asm volatile("mbarrier.arrive.expect_tx.shared.b64 _, [%0], 16;" ::"r"(shared(&bar)) : "memory");
    asm volatile("clusterlaunchcontrol.try_cancel.async.shared::cta.mbarrier::complete_tx::bytes.b128 [%0], [%1];" // want error:copy-not-awaited
                 ::"r"(shared(&answer)), "r"(shared(&bar)) : "memory");
  }
  out[block * BLOCK + t] = block + t;
  __syncthreads();
  int next;
  asm volatile("{.reg .pred p; .reg .b128 a; ld.shared.b128 a, [%2];\n" // want error:copy-not-awaited
               "clusterlaunchcontrol.query_cancel.is_canceled.pred.b128 p, a; selp.s32 %0, 1, 0, p; mov.s32 %1, 0;\n"
               "@p clusterlaunchcontrol.query_cancel.get_first_ctaid::x.b32.b128 %1, a;}" : "=r"(again), "=r"(next) : "r"(shared(&answer)) : "memory");
  if (again) out[next * BLOCK + t] = next + t;
}

int main() {
  int *out;
  cudaMallocManaged(&out, 8 * BLOCK * sizeof(int));
  work<<<8, BLOCK>>>(out);
  cudaDeviceSynchronize();
  printf("out[1] = %d\n", out[1]);
}
