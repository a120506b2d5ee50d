// Transpose of an n x n matrix through a padded tile of 32 x 32, blocks of 32 x 8 threads. n is a multiple of 32.

#define TILE 32
#define ROWS 8

extern "C" __global__ void transpose(int n, const unsigned *in, unsigned *out)
{
    __shared__ unsigned tile[TILE][TILE + 1];
    int tx = threadIdx.x, ty = threadIdx.y;
    int x = blockIdx.x * TILE + tx, y = blockIdx.y * TILE + ty;
    for (int r = 0; r < TILE; r += ROWS)
        tile[ty + r][tx] = in[(y + r) * n + x];
    __syncthreads();
    x = blockIdx.y * TILE + tx, y = blockIdx.x * TILE + ty;
    for (int r = 0; r < TILE; r += ROWS)
        out[(y + r) * n + x] = tile[tx][ty + r];
}
