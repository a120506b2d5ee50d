// An unknown operation code makes the kernel stop itself.
#include <cstdio>

const int BLOCK = 32;

__global__ void apply(const int *code, int *data) {
  switch (code[threadIdx.x]) {
  case 0: data[threadIdx.x] += 1; break;
  case 1: data[threadIdx.x] *= 2; break;
  default: __trap(); // want error:trap
  }
}

int main() {
  int *code, *data;
  cudaMallocManaged(&code, BLOCK * sizeof(int));
  cudaMallocManaged(&data, BLOCK * sizeof(int));
  for (int i = 0; i < BLOCK; i++) code[i] = i == 7 ? 2 : 0, data[i] = i;
  apply<<<1, BLOCK>>>(code, data);
  printf("%s\n", cudaGetErrorString(cudaDeviceSynchronize()));
}
