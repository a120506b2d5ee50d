// Product of n x n matrices with rows along x: the lanes of a warp read a down a column, and other warps read the same words.
// Blocks of 16 x 16 threads; n is a multiple of 16.

extern "C" __global__ void rowproduct(int n, const unsigned *a, const unsigned *b, unsigned *c)
{
    int row = blockIdx.x * blockDim.x + threadIdx.x, col = blockIdx.y * blockDim.y + threadIdx.y;
    unsigned sum = 0;
    for (int k = 0; k < n; k++)
        sum += a[row * n + k] * b[k * n + col];
    c[row * n + col] = sum;
}
