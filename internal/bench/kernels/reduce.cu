// Sum of integers: a tree in shared memory gives a partial sum a block; the host launches it again on those until one is left.

#define BLOCK 256

extern "C" __global__ void reduce(int n, const unsigned *in, unsigned *out)
{
    __shared__ unsigned part[BLOCK];
    int t = threadIdx.x, i = blockIdx.x * 2 * BLOCK + t;
    unsigned sum = i < n ? in[i] : 0;
    if (i + BLOCK < n)
        sum += in[i + BLOCK];
    part[t] = sum;
    __syncthreads();
    for (int half = BLOCK / 2; half > 0; half /= 2) {
        if (t < half)
            part[t] += part[t + half];
        __syncthreads();
    }
    if (t == 0)
        out[blockIdx.x] = part[0];
}
