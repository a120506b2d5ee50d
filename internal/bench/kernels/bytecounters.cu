// Histogram of 64 bins. Each thread counts in its own bytes: the four bytes of a shared word belong to four threads.

extern "C" __global__ void bytecounters(int n, const unsigned char *in, unsigned *out)
{
    __shared__ unsigned char count[64][64];
    int t = threadIdx.x;
    int column = (t & 15) << 2 | t >> 4; // adjacent lanes use adjacent banks
    for (int b = 0; b < 64; b++)
        count[b][column] = 0;
    __syncthreads();
    int first = (blockIdx.x * 64 + t) * 32;
    for (int i = first; i < first + 32 && i < n; i++)
        count[in[i] & 63][column]++;
    __syncthreads();
    unsigned sum = 0;
    for (int i = 0; i < 64; i++)
        sum += count[t][(t + i) & 63];
    atomicAdd(&out[t], sum);
}
