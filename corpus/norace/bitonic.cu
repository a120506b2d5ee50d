// A warp sorts its elements, with __syncwarp between the steps.
#include <cstdio>

const int N = 32, BLOCK = 32;

__device__ void swap(int *a, int i, int j) {
  int x = a[i];
  a[i] = a[j];
  a[j] = x;
}

__global__ void sort(const int *in, int *out) {
  __shared__ int a[BLOCK];
  int t = threadIdx.x;
  a[t] = in[(7 * t + 5) % BLOCK];
  __syncwarp();
  for (int size = 2; size <= BLOCK; size *= 2)
    for (int step = size / 2; step > 0; step /= 2) {
      int other = t ^ step;
      if (other > t) {
        if ((t & size) == 0) {
          if (a[t] > a[other]) swap(a, t, other);
        } else {
          if (a[t] < a[other]) swap(a, t, other);
        }
      }
      __syncwarp();
    }
  out[t] = a[t];
}

int main() {
  int *in, *out;
  cudaMallocManaged(&in, N * sizeof(int));
  cudaMallocManaged(&out, N * sizeof(int));
  for (int i = 0; i < N; i++) in[i] = i, out[i] = 0;
  sort<<<N / BLOCK, BLOCK>>>(in, out);
  cudaDeviceSynchronize();
  int wrong = 0;
  for (int i = 0; i < N; i++) wrong += out[i] != i;
  printf("%d wrong\n", wrong);
  return wrong != 0;
}
