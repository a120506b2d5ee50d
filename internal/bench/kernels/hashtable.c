#include <stdint.h>

struct bucket {
    int lock;
    uint32_t used;
    uint32_t key[7];
    uint32_t count[7];
};

static inline uint32_t bucket_of(uint32_t key, uint32_t buckets) { return (key * 2654435761u >> 7) % buckets; }

// One thread needs no lock, but it acquires and releases an uncontended one, because the kernel does.
void hashtable(void **buf, const uint64_t *arg)
{
    const uint32_t *restrict keys = buf[0];
    struct bucket *table = buf[1];
    uint32_t *restrict out = buf[2];
    uint64_t n = arg[0];
    uint32_t buckets = arg[1];
    for (uint64_t i = 0; i < n; i++) {
        uint32_t key = keys[i], k = 0;
        struct bucket *b = &table[bucket_of(key, buckets)];
        int free = 0;
        while (!__atomic_compare_exchange_n(&b->lock, &free, 1, 0, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED))
            free = 0;
        while (k < b->used && b->key[k] != key)
            k++;
        if (k == b->used && k < 7) {
            b->key[k] = key;
            b->count[k] = 0;
            b->used++;
        }
        if (k < 7)
            b->count[k]++;
        __atomic_store_n(&b->lock, 0, __ATOMIC_RELEASE);
    }
    for (uint64_t i = 0; i < n; i++) {
        uint32_t key = keys[i], k = 0;
        const struct bucket *b = &table[bucket_of(key, buckets)];
        while (k < b->used && b->key[k] != key)
            k++;
        out[i] = k < b->used ? b->count[k] : 0;
    }
}
