__device__ int twice(int v) { return v + v; }
