// Convolution of an n x n picture with 5 x 5 weights from global memory; pixels outside count as zero. Blocks of 16 x 16 threads;
// n is a multiple of 16.

extern "C" __global__ void convolve(int n, const unsigned *in, const unsigned *weights, unsigned *out)
{
    int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
    unsigned sum = 0;
    for (int dy = -2; dy <= 2; dy++)
        for (int dx = -2; dx <= 2; dx++)
            if (x + dx >= 0 && x + dx < n && y + dy >= 0 && y + dy < n)
                sum += in[(y + dy) * n + x + dx] * weights[(dy + 2) * 5 + dx + 2];
    out[y * n + x] = sum;
}
