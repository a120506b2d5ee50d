// Only even threads pass the first barrier, the odd ones go straight to the second: two barriers meet each other.
#include <cstdio>

const int BLOCK = 64;

__global__ void spread(const int *in, int *out) {
  __shared__ int tile[BLOCK];
  int t = threadIdx.x;
  tile[t] = in[t];
  if (t % 2 == 0) {
    __syncthreads(); // want error:barrier-divergence
    tile[t] += 1;
  }
  __syncthreads(); // want error:barrier-divergence
  out[t] = tile[t];
}

int main() {
  int *in, *out;
  cudaMallocManaged(&in, BLOCK * sizeof(int));
  cudaMallocManaged(&out, BLOCK * sizeof(int));
  for (int i = 0; i < BLOCK; i++) in[i] = i;
  spread<<<1, BLOCK>>>(in, out);
  printf("%s\n", cudaGetErrorString(cudaDeviceSynchronize()));
}
