// A tensor map that the kernel has made is used by a tensor copy behind a tensormap fence.
// -arch=compute_90a
#include <cstdint>
#include <cstdio>

const int BLOCK = 128;

#define REPLACE(field, type, constraint, value) \
  asm volatile("tensormap.replace.tile." field ".shared::cta.b1024." type " [%0], %1;" ::"r"(at), constraint(value) : "memory")
#define REPLACE_OF(field, ordinal, value) \
  asm volatile("tensormap.replace.tile." field ".shared::cta.b1024.b32 [%0], %1, %2;" ::"r"(at), "n"(ordinal), "r"(value) : "memory")
#define REPLACE_CODE(field, value) \
  asm volatile("tensormap.replace.tile." field ".shared::cta.b1024.b32 [%0], %1;" ::"r"(at), "n"(value) : "memory")

// A row of size integers, of which a box is copied.
__device__ void describe(uint32_t at, const int *row, uint32_t size, uint32_t box) {
  REPLACE("global_address", "b64", "l", row);
  REPLACE("rank", "b32", "r", 0);
  REPLACE_OF("global_dim", 0, size);
  REPLACE_OF("box_dim", 0, box);
  REPLACE_OF("element_stride", 0, 1);
  REPLACE_CODE("elemtype", 3); // s32
}

__global__ void fetch(const int *in, int *out, uint64_t *map) {
  __shared__ alignas(128) uint64_t made[16];
  __shared__ alignas(128) int tile[BLOCK];
  __shared__ uint64_t full;
  int t = threadIdx.x;
  uint32_t b = __cvta_generic_to_shared(&full), m = __cvta_generic_to_shared(made);
  if (t < 16) made[t] = 0;
  if (t == 0) asm volatile("mbarrier.init.shared.b64 [%0], 1;" ::"r"(b) : "memory");
  __syncthreads();
  if (t == 0) describe(m, in, 4 * BLOCK, BLOCK);
  __syncthreads();
  if (t < 32) asm volatile("tensormap.cp_fenceproxy.global.shared::cta.tensormap::generic.release.gpu.sync.aligned [%0], [%1], 128;" ::"l"(map), "r"(m) : "memory");
  __syncthreads();
  if (t == 0) {
    asm volatile("fence.proxy.tensormap::generic.acquire.gpu [%0], 128;" ::"l"(map) : "memory");
    asm volatile("mbarrier.arrive.expect_tx.shared.b64 _, [%0], %1;" ::"r"(b), "n"(4 * BLOCK) : "memory");
    asm volatile("cp.async.bulk.tensor.1d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%0], [%1, {%2}], [%3];"
                 ::"r"((uint32_t)__cvta_generic_to_shared(tile)), "l"(map), "r"(2 * BLOCK), "r"(b) : "memory");
  }
  asm volatile("{.reg .pred p; again: mbarrier.try_wait.parity.shared.b64 p, [%0], 0; @!p bra again;}" ::"r"(b) : "memory");
  out[t] = tile[t];
}

int main() {
  int *in, *out;
  uint64_t *map;
  cudaMallocManaged(&in, 4 * BLOCK * sizeof(int));
  cudaMallocManaged(&out, BLOCK * sizeof(int));
  cudaMalloc(&map, 128);
  for (int i = 0; i < 4 * BLOCK; i++) in[i] = i;
  fetch<<<1, BLOCK>>>(in, out, map);
  cudaDeviceSynchronize();
  printf("out[1] = %d\n", out[1]);
  return out[1] != 257;
}
