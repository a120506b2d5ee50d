// A recursive sum whose every level ends at a barrier.
__device__ void sum(int *s, int n) {
  if (n == 0) return;
  if (threadIdx.x < n) s[threadIdx.x] += s[threadIdx.x + n];
  __syncthreads();
  sum(s, n / 2);
}

__global__ void k(int *out) {
  __shared__ int s[64];
  s[threadIdx.x] = threadIdx.x;
  __syncthreads();
  sum(s, 32);
  if (threadIdx.x == 0) *out = s[0];
}
