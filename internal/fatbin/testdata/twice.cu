__device__ int twice(int v) { return v + v; }
__global__ void k(int *p) { p[threadIdx.x] = twice(p[threadIdx.x]); }
