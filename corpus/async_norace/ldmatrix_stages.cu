// Three stages of tiles that ldmatrix reads: a barrier is before a stage is filled again.
// -arch=compute_80
#include <cstdint>
#include <cstdio>

const int STAGES = 3, STEPS = 6, TILE = 8 * 8 * 4; // four matrices of 8 rows of 8 halves

__device__ uint32_t shared(const void *p) { return (uint32_t)__cvta_generic_to_shared(p); }

__device__ void fetch(uint16_t (*stage)[TILE], const uint16_t *in, int step, int t) {
  if (step < STEPS && t < 32)
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(shared(&stage[step % STAGES][t * 8])), "l"(in + step * TILE + t * 8) : "memory");
  asm volatile("cp.async.commit_group;" ::: "memory");
}

__global__ void add(const uint16_t *in, uint32_t *out) {
  __shared__ alignas(128) uint16_t stage[STAGES][TILE];
  int t = threadIdx.x;
  uint32_t r[4], sum = 0;
  for (int s = 0; s < STAGES - 1; s++) fetch(stage, in, s, t);
  for (int s = 0; s < STEPS; s++) {
    asm volatile("cp.async.wait_group %0;" ::"n"(STAGES - 2) : "memory");
    __syncthreads();
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3]) : "r"(shared(&stage[s % STAGES][t % 32 * 8])) : "memory");
    sum += r[0] + r[1] + r[2] + r[3];
    fetch(stage, in, s + STAGES - 1, t);
  }
  out[t] = sum;
}

int main() {
  uint16_t *in;
  uint32_t *out;
  cudaMallocManaged(&in, STEPS * TILE * sizeof(uint16_t));
  cudaMallocManaged(&out, 64 * sizeof(uint32_t));
  for (int i = 0; i < STEPS * TILE; i++) in[i] = 1;
  add<<<1, 64>>>(in, out);
  cudaDeviceSynchronize();
  printf("out[1] = %u\n", out[1]);
}
