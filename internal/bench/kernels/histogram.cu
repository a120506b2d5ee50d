// Byte histogram: atomics on shared bins by all threads, then on global bins, one addition for each block and bin.

#define BINS 256

extern "C" __global__ void histogram(int n, const unsigned char *in, unsigned *out)
{
    __shared__ unsigned bins[BINS];
    bins[threadIdx.x] = 0;
    __syncthreads();
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
        atomicAdd(&bins[in[i]], 1u);
    __syncthreads();
    atomicAdd(&out[threadIdx.x], bins[threadIdx.x]);
}
