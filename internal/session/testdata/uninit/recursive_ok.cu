// Each call fills the elements that it reads.
__device__ int pairs(int n) {
  int part[2];
  if (n < 2) return n;
  part[0] = pairs(n - 1);
  part[1] = pairs(n - 2);
  return part[0] + part[1];
}

__global__ void recursive(int *out, const int *in, int n) {
  out[threadIdx.x] = pairs(n + threadIdx.x % 3);
}
