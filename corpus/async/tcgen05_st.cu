// A warp loads what it has stored to tensor memory with no tcgen05.wait::st.
// -arch=compute_100a
#include <cstdint>
#include <cstdio>

__device__ uint32_t at(const void *p) { return (uint32_t)__cvta_generic_to_shared(p); }

__device__ void allocate(uint32_t *where) {
  asm volatile("tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [%0], 32;" :: "r"(at(where)) : "memory");
}

__device__ void release(uint32_t from) {
  asm volatile("tcgen05.dealloc.cta_group::1.sync.aligned.b32 %0, 32;" :: "r"(from));
}

// The first column of the lanes of a warp.
__device__ float load(uint32_t d) {
  float v;
  asm volatile("tcgen05.ld.sync.aligned.32x32b.x1.b32 {%0}, [%1];" : "=f"(v) : "r"(d + (threadIdx.x / 32 * 32 << 16)) : "memory"); // want error:tensor-core-not-awaited
  return v;
}

__device__ void loaded() { asm volatile("tcgen05.wait::ld.sync.aligned;" ::: "memory"); }

__device__ void store(uint32_t d, float v) {
  asm volatile("tcgen05.st.sync.aligned.32x32b.x1.b32 [%0], {%1};" :: "r"(d + (threadIdx.x / 32 * 32 << 16)), "f"(v) : "memory"); // want error:tensor-core-not-awaited
}

__device__ void stored() { asm volatile("tcgen05.wait::st.sync.aligned;" ::: "memory"); }

__global__ void product(float *out) {
  __shared__ uint32_t base;
  int t = threadIdx.x;
  if (t < 32) allocate(&base);
  __syncthreads();
  store(base, 3);
  float v = load(base);
  loaded();
  out[t] = v;
  stored();
  __syncthreads();
  if (t < 32) release(base);
}

int main() {
  float *out;
  cudaMallocManaged(&out, 128 * sizeof(float));
  product<<<1, 128>>>(out);
  cudaDeviceSynchronize();
  printf("out[0] = %g\n", out[0]);
}
