// Lanes call virtual functions of objects of different classes; a barrier is before.
#include <cstdio>

const int N = 128, BLOCK = 128;

struct Operation {
  __device__ virtual int apply(const int *v) const = 0;
};

struct Twice : Operation {
  __device__ int apply(const int *v) const override { return 2 * *v; }
};

struct Next : Operation {
  __device__ int apply(const int *v) const override { return *v + 1; }
};

__global__ void apply(const int *in, int *out) {
  __shared__ int v[BLOCK];
  int t = threadIdx.x;
  Twice twice;
  Next next;
  const Operation *operation = t % 2 ? (const Operation *)&twice : &next;
  v[t] = in[t];
  __syncthreads();
  out[t] = operation->apply(&v[(t + 32) % BLOCK]);
}

int main() {
  int *in, *out;
  cudaMallocManaged(&in, N * sizeof(int));
  cudaMallocManaged(&out, N * sizeof(int));
  for (int i = 0; i < N; i++) in[i] = i, out[i] = 0;
  apply<<<N / BLOCK, BLOCK>>>(in, out);
  cudaDeviceSynchronize();
  int wrong = 0;
  for (int i = 0; i < N; i++) wrong += out[i] != (i % 2 ? 2 * ((i + 32) % BLOCK) : (i + 32) % BLOCK + 1);
  printf("%d wrong\n", wrong);
  return wrong != 0;
}
