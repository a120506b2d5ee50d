// A hash table with a spin lock a bucket: a thread a key, which takes the lock by compare-and-swap, finds or appends the key
// in the bucket with plain accesses, and counts it. A second kernel looks every key up again.

struct Bucket {
    int lock;
    unsigned used;
    unsigned key[7];
    unsigned count[7];
};

__device__ unsigned bucketOf(unsigned key, unsigned buckets) { return (key * 2654435761u >> 7) % buckets; }

extern "C" __global__ void insert(int n, unsigned buckets, const unsigned *keys, Bucket *table)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n)
        return;
    unsigned key = keys[i];
    Bucket *b = &table[bucketOf(key, buckets)];
    while (atomicCAS(&b->lock, 0, 1) != 0)
        ;
    __threadfence();
    unsigned k = 0;
    while (k < b->used && b->key[k] != key)
        k++;
    if (k == b->used && k < 7) {
        b->key[k] = key;
        b->count[k] = 0;
        b->used++;
    }
    if (k < 7)
        b->count[k]++;
    __threadfence();
    atomicExch(&b->lock, 0);
}

extern "C" __global__ void lookup(int n, unsigned buckets, const unsigned *keys, const Bucket *table, unsigned *out)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n)
        return;
    unsigned key = keys[i];
    const Bucket *b = &table[bucketOf(key, buckets)];
    unsigned k = 0;
    while (k < b->used && b->key[k] != key)
        k++;
    out[i] = k < b->used ? b->count[k] : 0;
}
