// Byte histogram with atomics on global bins only.

extern "C" __global__ void bins(int n, const unsigned char *in, unsigned *out)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        atomicAdd(&out[in[i]], 1);
}
