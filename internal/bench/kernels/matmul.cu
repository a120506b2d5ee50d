// c = a*b of n x n matrices, by tiles of 16 x 16 in shared memory. n is a multiple of 16.

#define TILE 16

extern "C" __global__ void matmul(int n, const float *a, const float *b, float *c)
{
    __shared__ float ta[TILE][TILE], tb[TILE][TILE];
    int tx = threadIdx.x, ty = threadIdx.y;
    int row = blockIdx.y * TILE + ty, col = blockIdx.x * TILE + tx;
    float sum = 0;
    for (int k0 = 0; k0 < n; k0 += TILE) {
        ta[ty][tx] = a[row * n + k0 + tx];
        tb[ty][tx] = b[(k0 + ty) * n + col];
        __syncthreads();
        for (int k = 0; k < TILE; k++)
            sum = fmaf(ta[ty][k], tb[k][tx], sum);
        __syncthreads();
    }
    c[row * n + col] = sum;
}
