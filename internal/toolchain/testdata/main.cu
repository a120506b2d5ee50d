extern __device__ int twice(int v);

__global__ void store(int *p) { p[threadIdx.x] = twice(p[threadIdx.x]); }

int main() {
  int *p;
  cudaMalloc(&p, 128);
  store<<<1, 32>>>(p);
  return cudaDeviceSynchronize();
}
