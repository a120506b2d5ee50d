// A pointer that means shared memory in one block's threads and global memory in none: the compiler cannot know.
__device__ int *choose(int *global, int *shared, int n) { return n > 1000 ? global : shared; }

__global__ void k(int *x, int *out) {
  __shared__ int s[64];
  int t = threadIdx.x, *p = choose(x, s, t);
  p[t] = t; // want error:missing-barrier
  out[t] = s[63 - t]; // want error:missing-barrier
}
