// One global counter: each thread whose word is odd does an atomic addition.

extern "C" __global__ void counter(int n, const unsigned *in, unsigned *count)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n && in[i] % 2)
        atomicAdd(count, 1);
}
