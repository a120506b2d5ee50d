__global__ void store(int *p) { p[threadIdx.x] = 1; }

int main() {
  int *p;
  cudaMalloc(&p, 128);
  store<<<1, 32>>>(p);
  return cudaDeviceSynchronize();
}
