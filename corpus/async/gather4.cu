// Four rows of a matrix are gathered, and used before the copy is complete.
// -arch=compute_100a
#include <cstdint>
#include <cstdio>

const int COLUMNS = 32, ROWS = 16;

#define REPLACE(field, type, constraint, value) \
  asm volatile("tensormap.replace.tile." field ".shared::cta.b1024." type " [%0], %1;" ::"r"(at), constraint(value) : "memory")
#define REPLACE_OF(field, ordinal, value) \
  asm volatile("tensormap.replace.tile." field ".shared::cta.b1024.b32 [%0], %1, %2;" ::"r"(at), "n"(ordinal), "r"(value) : "memory")
#define REPLACE_CODE(field, value) \
  asm volatile("tensormap.replace.tile." field ".shared::cta.b1024.b32 [%0], %1;" ::"r"(at), "n"(value) : "memory")

// A matrix of which rows are copied, one at a time.
__device__ void describe(uint32_t at, const int *from) {
  REPLACE("global_address", "b64", "l", from);
  REPLACE("rank", "b32", "r", 1);
  REPLACE_OF("global_dim", 0, COLUMNS);
  REPLACE_OF("global_dim", 1, ROWS);
  asm volatile("tensormap.replace.tile.global_stride.shared::cta.b1024.b64 [%0], 0, %1;" ::"r"(at), "l"(4ull * COLUMNS) : "memory");
  REPLACE_OF("box_dim", 0, COLUMNS);
  REPLACE_OF("box_dim", 1, 1);
  REPLACE_OF("element_stride", 0, 1);
  REPLACE_OF("element_stride", 1, 1);
  REPLACE_CODE("elemtype", 3); // s32
}

__global__ void gather(const int *in, int *out, uint64_t *map) {
  __shared__ alignas(128) uint64_t made[16];
  __shared__ alignas(128) int rows[4 * COLUMNS];
  __shared__ uint64_t full;
  int t = threadIdx.x;
  uint32_t b = __cvta_generic_to_shared(&full), m = __cvta_generic_to_shared(made);
  if (t < 16) made[t] = 0;
  if (t == 0) asm volatile("mbarrier.init.shared.b64 [%0], 1;" ::"r"(b) : "memory");
  __syncthreads();
  if (t == 0) describe(m, in);
  __syncthreads();
  if (t < 32) asm volatile("tensormap.cp_fenceproxy.global.shared::cta.tensormap::generic.release.gpu.sync.aligned [%0], [%1], 128;" ::"l"(map), "r"(m) : "memory");
  __syncthreads();
  if (t == 0) {
    asm volatile("fence.proxy.tensormap::generic.acquire.gpu [%0], 128;" ::"l"(map) : "memory");
    asm volatile("mbarrier.arrive.expect_tx.shared.b64 _, [%0], %1;" ::"r"(b), "n"(16 * COLUMNS) : "memory");
    asm volatile("cp.async.bulk.tensor.2d.shared::cta.global.tile::gather4.mbarrier::complete_tx::bytes [%0], [%1, {%2, %3, %4, %5, %6}], [%7];" // want error:copy-not-awaited
                 ::"r"((uint32_t)__cvta_generic_to_shared(rows)), "l"(map), "r"(0), "r"(9), "r"(2), "r"(15), "r"(7), "r"(b) : "memory");
  }
  __syncthreads();
  out[t] = rows[t]; // want error:copy-not-awaited
  asm volatile("{.reg .pred p; again: mbarrier.try_wait.parity.shared.b64 p, [%0], 0; @!p bra again;}" ::"r"(b) : "memory");
}

int main() {
  int *in, *out;
  uint64_t *map;
  cudaMallocManaged(&in, COLUMNS * ROWS * sizeof(int));
  cudaMallocManaged(&out, 4 * COLUMNS * sizeof(int));
  cudaMalloc(&map, 128);
  for (int i = 0; i < COLUMNS * ROWS; i++) in[i] = i;
  gather<<<1, 4 * COLUMNS>>>(in, out, map);
  cudaDeviceSynchronize();
  printf("out[33] = %d\n", out[33]);
}
