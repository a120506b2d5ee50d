// Product of a sparse matrix in compressed rows and a vector, one thread for each row.

extern "C" __global__ void spmv(int rows, const int *first, const int *column, const unsigned *value, const unsigned *x,
                                unsigned *y)
{
    int row = blockIdx.x * blockDim.x + threadIdx.x;
    if (row >= rows)
        return;
    unsigned sum = 0;
    for (int k = first[row]; k < first[row + 1]; k++)
        sum += value[k] * x[column[k]];
    y[row] = sum;
}
