// Sixteen blocks shift an array round and round between barriers of the grid, by words, pairs and bytes, and never meet.
__device__ void barrier(int *arrived) {
  __syncthreads();
  if (threadIdx.x == 0) {
    __threadfence();
    int until = (atomicAdd(arrived, 1) / 16 + 1) * 16;
    while (atomicAdd(arrived, 0) < until) {}
    __threadfence();
  }
  __syncthreads();
}

__global__ void k(int *x, int *arrived, int *out) {
  int i = blockIdx.x * 256 + threadIdx.x;
  x[i] = i;
  for (int round = 0; round < 3; round++) {
    barrier(arrived);
    int v = x[(i + 1) % 4096];
    barrier(arrived);
    x[i] = v;
    barrier(arrived);
    long long two = ((long long *)x)[(i + 1) % 2048];
    barrier(arrived);
    if (i < 2048) ((long long *)x)[i] = two;
  }
  barrier(arrived);
  for (int b = 0; b < 4; b++) ((char *)out)[4 * i + b] = ((char *)x)[4 * i + b];
}
