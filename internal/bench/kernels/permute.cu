// Gather and scatter: each thread moves a word from one random place to another.

extern "C" __global__ void permute(int n, const int *from, const int *to, const unsigned *in, unsigned *out)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        out[to[i]] = in[from[i]];
}
