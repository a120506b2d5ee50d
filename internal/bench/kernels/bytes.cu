// A filter over bytes: each thread reads two and writes one.

extern "C" __global__ void bytes(int n, const unsigned char *in, unsigned char *out)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        out[i] = (3 * in[i] + in[i + 1 < n ? i + 1 : i]) / 4;
}
