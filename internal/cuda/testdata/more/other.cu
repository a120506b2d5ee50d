__device__ int counter;
__device__ int twice(int x) { return 2 * x; }
