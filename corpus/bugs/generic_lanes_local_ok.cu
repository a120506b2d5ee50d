// Arrays in local memory are each thread's own, at the same addresses, also by generic pointers.
__device__ void fill(int *p, int n) {
  for (int i = 0; i < 4; i++) p[i] = n + i;
}

__global__ void k(int *out) {
  int a[4], i = blockIdx.x * 64 + threadIdx.x;
  fill(a, i + 1);
  out[i] = a[i % 1 + 3];
}
