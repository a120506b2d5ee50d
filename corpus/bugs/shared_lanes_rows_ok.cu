// A block of 16 by 4 threads: rows 0 and 1 are one warp, rows 2 and 3 the other.
__global__ void k(int *out) {
  __shared__ int s[4][16];
  int x = threadIdx.x, y = threadIdx.y;
  s[y][x] = 16 * y + x;
  __syncwarp();
  out[16 * y + x] = s[y ^ 1][x];
}
