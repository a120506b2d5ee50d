// A block of 16 by 4 threads: rows 1 and 2 are of different warps.
__global__ void k(int *out) {
  __shared__ int s[4][16];
  int x = threadIdx.x, y = threadIdx.y;
  s[y][x] = 16 * y + x; // want error:missing-barrier
  __syncwarp();
  out[16 * y + x] = s[3 - y][x]; // want error:missing-barrier
}
