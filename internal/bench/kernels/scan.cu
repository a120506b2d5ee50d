// Exclusive prefix sums, work-efficient: each block scans 512 elements in shared memory (up-sweep, down-sweep), the sums of
// the blocks are scanned by one block, and added. At most 512 blocks.

#define BLOCK 256

extern "C" __global__ void scan_blocks(int n, const unsigned *in, unsigned *out, unsigned *sums)
{
    __shared__ unsigned tile[2 * BLOCK];
    int t = threadIdx.x, base = blockIdx.x * 2 * BLOCK;
    tile[t] = base + t < n ? in[base + t] : 0;
    tile[t + BLOCK] = base + t + BLOCK < n ? in[base + t + BLOCK] : 0;
    int step = 1;
    for (int d = BLOCK; d > 0; d /= 2) {
        __syncthreads();
        if (t < d) {
            int a = step * (2 * t + 1) - 1, b = step * (2 * t + 2) - 1;
            tile[b] += tile[a];
        }
        step *= 2;
    }
    if (t == 0) {
        sums[blockIdx.x] = tile[2 * BLOCK - 1];
        tile[2 * BLOCK - 1] = 0;
    }
    for (int d = 1; d <= BLOCK; d *= 2) {
        step /= 2;
        __syncthreads();
        if (t < d) {
            int a = step * (2 * t + 1) - 1, b = step * (2 * t + 2) - 1;
            unsigned left = tile[a];
            tile[a] = tile[b];
            tile[b] += left;
        }
    }
    __syncthreads();
    if (base + t < n)
        out[base + t] = tile[t];
    if (base + t + BLOCK < n)
        out[base + t + BLOCK] = tile[t + BLOCK];
}

extern "C" __global__ void add_sums(int n, unsigned *out, const unsigned *sums)
{
    int i = blockIdx.x * 2 * BLOCK + threadIdx.x;
    unsigned sum = sums[blockIdx.x];
    if (i < n)
        out[i] += sum;
    if (i + BLOCK < n)
        out[i + BLOCK] += sum;
}
