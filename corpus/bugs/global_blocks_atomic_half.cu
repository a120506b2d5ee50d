// A 64-bit atomic and a 32-bit atomic on its upper half.
__global__ void k(unsigned long long *x) {
  if (blockIdx.x == 0)
    atomicAdd(x, 1ull << 32); // want warning:mixed-size
  else
    atomicAdd((unsigned *)x + 1, 1u); // want warning:mixed-size
}
