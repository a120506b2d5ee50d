// A warp sorts its elements. Between the steps lockstep hardware reconverges, whichever way a lane compared.
#include <cstdio>

const int N = 32, BLOCK = 32;

__device__ void swap(int *a, int i, int j) {
  int x = a[i]; // want warning:warp-synchronous
  a[i] = a[j]; // want warning:warp-synchronous
  a[j] = x; // want warning:warp-synchronous
}

__global__ void sort(const int *in, int *out) {
  __shared__ int a[BLOCK];
  int t = threadIdx.x;
  a[t] = in[(7 * t + 5) % BLOCK]; // want warning:warp-synchronous
  for (int size = 2; size <= BLOCK; size *= 2)
    for (int step = size / 2; step > 0; step /= 2) {
      int other = t ^ step;
      if (other > t) {
        if ((t & size) == 0) {
          if (a[t] > a[other]) swap(a, t, other); // want warning:warp-synchronous
        } else {
          if (a[t] < a[other]) swap(a, t, other); // want warning:warp-synchronous
        }
      }
    }
  out[t] = a[t]; // want warning:warp-synchronous
}

int main() {
  int *in, *out;
  cudaMallocManaged(&in, N * sizeof(int));
  cudaMallocManaged(&out, N * sizeof(int));
  for (int i = 0; i < N; i++) in[i] = i, out[i] = 0;
  sort<<<N / BLOCK, BLOCK>>>(in, out);
  cudaDeviceSynchronize();
  printf("out[0] = %d\n", out[0]);
}
