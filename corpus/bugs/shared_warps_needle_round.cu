// Twenty rounds over two buffers that take turns; once one thread loads from the one that is being stored.
__global__ void k(int *out) {
  __shared__ int s[2][256];
  int t = threadIdx.x, sum = 0;
  for (int i = 0; i < 20; i++) {
    s[i % 2][t] = t + i; // want error:missing-barrier
    __syncthreads();
    int late = i == 13 && t == 77 && blockIdx.x == 2;
    sum += s[(i + late) % 2][(t + 128) % 256]; // want error:missing-barrier
  }
  out[blockIdx.x * 256 + t] = sum;
}
